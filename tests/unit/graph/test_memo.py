"""Each result is made once, and the latest used are kept."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansorlite.graph.memo import Memo


def test_a_result_is_made_once_for_many_threads() -> None:
    memo: Memo[int] = Memo(4)
    made: list[int] = []
    together = threading.Barrier(8)

    def make() -> int:
        made.append(1)
        return 7

    def ask() -> int:
        together.wait()
        return memo.get("key", make)

    with ThreadPoolExecutor(8) as pool:
        assert [future.result() for future in [pool.submit(ask) for _ in range(8)]] == [7] * 8
    assert len(made) == 1


def test_those_not_used_for_the_longest_time_go() -> None:
    memo: Memo[int] = Memo(2)
    made: list[int] = []

    def get(key: int) -> int:
        return memo.get(key, lambda: made.append(key) or key)

    for key in (1, 2, 1, 3, 1, 2):
        assert get(key) == key
    assert made == [1, 2, 3, 2]
    assert len(memo) == 2


def test_a_failure_is_told_and_tried_again() -> None:
    memo: Memo[int] = Memo(2)
    with pytest.raises(ZeroDivisionError):
        memo.get("key", lambda: 1 // 0)
    assert memo.get("key", lambda: 5) == 5
