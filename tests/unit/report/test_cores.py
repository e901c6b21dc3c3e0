"""The calling thread by itself on its core, and everything as before afterwards."""

from __future__ import annotations

import os
import threading
from typing import Final

import pytest

from ansorlite.report.cores import apart

ALLOWED: Final = os.sched_getaffinity(0)


class Other:
    """A thread that waits, on one core of its own choice."""

    cores: Final = {max(ALLOWED)}

    def __init__(self) -> None:
        self._begun, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._stay)
        self._thread.start()
        assert self._begun.wait(60)

    def now(self) -> set[int]:
        assert self._thread.native_id is not None
        return os.sched_getaffinity(self._thread.native_id)

    def end(self) -> None:
        self._leave.set()
        self._thread.join()

    def end_and_fail(self) -> None:
        self.end()
        raise ZeroDivisionError

    def _stay(self) -> None:
        os.sched_setaffinity(0, self.cores)
        self._begun.set()
        self._leave.wait(60)


@pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two cores")
def test_others_keep_off_the_callers_core() -> None:
    other = Other()
    with apart():
        (core,) = os.sched_getaffinity(0)
        assert other.now() == ALLOWED - {core}
    assert (os.sched_getaffinity(0), other.now()) == (ALLOWED, Other.cores)
    other.end()


def test_all_is_as_before_after_an_error_though_a_thread_has_ended() -> None:
    first, second = Other(), Other()
    with pytest.raises(ZeroDivisionError), apart():
        first.end_and_fail()
    assert (os.sched_getaffinity(0), second.now()) == (ALLOWED, Other.cores)
    second.end()
