"""Large results come in memory of earlier ones, but never of one that somebody may still look at."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.runtime import recycled
from ansorlite.runtime.arguments import at_a_line, maker
from ansorlite.runtime.recycled import MAPPED, Recycled
from ansorlite.te import dtypes

Array = np.ndarray[Any, Any]

SHAPE = (1 << 10, 1 << 10)
F4 = np.dtype(np.float32)


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Recycled:
    monkeypatch.setattr(recycled, "MAPPED", 1 << 20)
    return Recycled(at_a_line)


def place(array: Array) -> int:
    return array.ctypes.data


@pytest.mark.parametrize("dtype", list(dtypes.NUMPY))
def test_a_result_of_any_type_comes_where_one_was_that_is_gone(results: Recycled, dtype: str) -> None:
    kind = dtypes.NUMPY[dtype]
    first = results(SHAPE, kind)
    assert (first.shape, first.dtype, first.flags.c_contiguous, first.flags.writeable) == (SHAPE, kind, True, True)
    assert place(first) % 64 == 0
    first[...] = 1
    was = place(first)
    second = results(SHAPE, kind)
    assert place(second) != was
    del first
    third = results(SHAPE, kind)
    assert place(third) == was
    third[...] = 1
    assert (third == 1).all()


@pytest.mark.parametrize(
    "share",
    [
        lambda array: array[3:5, ::2],
        lambda array: array.reshape(-1).view(np.int32).T,
        memoryview,
        lambda array: array.ravel().data,
        lambda array: np.asarray(memoryview(array)),
        lambda array: np.from_dlpack(array),
        lambda array: iter(array),
    ],
    ids=["slice", "view", "memoryview", "data", "array of memoryview", "dlpack", "iterator"],
)
def test_what_shares_the_memory_of_a_result_keeps_it(results: Recycled, share: Callable[[Array], object]) -> None:
    result = results(SHAPE, F4)
    was, shared = place(result), share(result)
    del result
    assert place(results(SHAPE, F4)) != was
    del shared
    assert was in {place(array) for array in [results(SHAPE, F4), results(SHAPE, F4)]}


def test_a_tensor_of_torch_keeps_it(results: Recycled) -> None:
    torch = pytest.importorskip("torch")
    result = results(SHAPE, F4)
    was, tensor = place(result), torch.from_numpy(result)
    del result
    assert place(results(SHAPE, F4)) != was
    assert tensor.data_ptr() == was


def test_no_more_than_two_blocks_wait_for_results(results: Recycled) -> None:
    arrays = [results(SHAPE, F4) for _ in range(5)]
    del arrays
    assert [len(idle) for idle in results._idle.values()] == [2]
    other = results((1 << 19,), F4)
    del other
    assert sorted(len(idle) for idle in results._idle.values()) == [1, 2]


def test_blocks_die_with_what_made_them_and_results_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycled, "MAPPED", 1 << 20)
    results = Recycled(at_a_line)
    result, other = results(SHAPE, F4), results(SHAPE, F4)
    result[...] = 3
    del other
    (blocks,) = results._idle.values()
    block = weakref.ref(blocks[0])
    del blocks, results
    assert (result == 3).all()
    del result
    gc.collect()
    assert block() is None


def test_small_results_are_made_as_before() -> None:
    assert maker(MAPPED - 1) is at_a_line
    made = maker(MAPPED)
    assert isinstance(made, Recycled)
    small = made((3, 4), F4)
    assert small.shape == (3, 4)
    assert not made._idle


def test_threads_never_get_the_same_memory(results: Recycled) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(40):
            mine = results((1 << 18,), F4)
            mine[::4096] = number * 1000 + turn
            if not (mine[::4096] == number * 1000 + turn).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_kernel_that_is_called_again_gives_right_results_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycled, "MAPPED", 1 << 20)
    monkeypatch.setattr("ansorlite.runtime.arguments.MAPPED", 1 << 20)
    a = te.placeholder(SHAPE, name="a")
    kernel = al.compile(al.Task([a, te.compute(SHAPE, lambda i, j: a[i, j] + 1.0, name="b")]))
    kept, places = [], set()
    for turn in range(6):
        result = kernel(np.full(SHAPE, turn, np.float32))
        places.add(place(result))
        if turn % 3 == 0:
            kept.append((turn, result))
    assert len(places) <= 4
    for turn, result in kept:
        assert (result == turn + 1).all()
    assert (copy.deepcopy(kept[0][1]) == 1).all()
