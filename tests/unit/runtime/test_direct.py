"""Builtin functions of arrays: what they run on, and what they leave alone."""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from ansorlite.runtime import builtin
from ansorlite.runtime.builtin import Argument, Role
from ansorlite.runtime.direct import direct_calls
from ansorlite.runtime.recycled import MAPPED

F4 = np.dtype(np.float32)
SHAPE = (2, 3)


class Calls:
    """A function for native code to call, which notes the addresses that it gets: those of arrays between two of others."""

    def __init__(self, *arguments: Argument) -> None:
        self.seen: list[list[int]] = []
        self._slots = len(arguments) + 2
        self._native = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))(self._note)
        function = ctypes.cast(self._native, ctypes.c_void_p).value
        assert function is not None
        direct = direct_calls(function, [11, *[0] * len(arguments), 44], arguments)
        self.direct, self.making = direct.given, direct.making

    def make(self, *arrays: object) -> tuple[np.ndarray, ...] | None:
        assert self.making is not None
        return self.making(*arrays)

    def _note(self, addresses: ctypes._Pointer[ctypes.c_void_p]) -> None:
        self.seen.append([addresses[slot] or 0 for slot in range(self._slots)])


def written(shape: tuple[int, ...], slot: int, dtype: str = "float32") -> Argument:
    return Argument(shape, np.dtype(dtype), slot, Role.WRITTEN)


@pytest.fixture
def calls() -> Calls:
    return Calls(Argument(SHAPE, F4, 2, Role.READ), written((), 1, "int64"))


def test_every_address_is_in_its_slot(calls: Calls) -> None:
    x, y = np.zeros(SHAPE, F4), np.zeros((), np.int64)
    assert calls.direct(x, y) == ()
    assert calls.seen == [[11, y.ctypes.data, x.ctypes.data, 44]]


def test_views_and_read_only_inputs_are_fine(calls: Calls) -> None:
    rows = np.zeros((5, 3), F4)
    rows.flags.writeable = False
    y = np.zeros((), np.int64)
    assert calls.direct(rows[3:], y) == ()
    assert calls.seen == [[11, y.ctypes.data, rows.ctypes.data + 3 * 12, 44]]


class Sub(np.ndarray):
    pass


def _read_only() -> np.ndarray:
    array = np.zeros((), np.int64)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "x",
    [
        lambda: np.zeros((3, 2), F4),
        lambda: np.zeros((6,), F4),
        lambda: np.zeros((2, 3, 1), F4),
        lambda: np.zeros((3, 2), F4).T,
        lambda: np.zeros((2, 6), F4)[:, ::2],
        lambda: np.zeros(SHAPE, ">f4"),
        lambda: np.zeros(SHAPE, np.int32),
        lambda: np.zeros(25, np.uint8)[1:].view(F4).reshape(SHAPE),
        lambda: np.zeros(SHAPE, F4).view(Sub),
        lambda: [[0.0] * 3] * 2,
        lambda: None,
        lambda: 7,
    ],
)
def test_nothing_happens_to_what_does_not_fit(calls: Calls, x: Callable[[], object]) -> None:
    assert calls.direct(x(), np.zeros((), np.int64)) is None
    assert calls.seen == []


def test_nothing_happens_where_results_have_no_place(calls: Calls) -> None:
    both = np.zeros(8, np.int64)
    x = both[1:4].view(F4).reshape(SHAPE)
    assert calls.direct(x, _read_only()) is None
    for inside in (1, 2, 3):
        assert calls.direct(x, both[inside : inside + 1].reshape(())) is None
    assert calls.seen == []
    for beside in (0, 4):
        assert calls.direct(x, both[beside : beside + 1].reshape(())) == ()
    assert len(calls.seen) == 2


def test_the_number_of_arguments_counts(calls: Calls) -> None:
    x, y = np.zeros(SHAPE, F4), np.zeros((), np.int64)
    assert [calls.direct(), calls.direct(x), calls.direct(x, y, y)] == [None] * 3
    assert calls.seen == []


def test_arguments_are_not_kept(calls: Calls) -> None:
    x, y = np.zeros(SHAPE, F4), np.zeros((), np.int64)
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        calls.direct(x, y)
        calls.direct(y, x)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before


def test_results_are_made(calls: Calls) -> None:
    x = np.zeros(SHAPE, F4)
    (y,) = calls.make(x)
    assert (type(y), y.shape, y.dtype, y.flags.owndata) == (np.ndarray, (), np.int64, True)
    assert calls.seen == [[11, y.ctypes.data, x.ctypes.data, 44]]
    assert calls.make(x)[0] is not y


def test_results_of_more_than_a_line_begin_at_one() -> None:
    calls = Calls(written((5, 7), 3), written((16,), 1), written((3, 5, 2), 2, "int8"))
    made = calls.make()
    assert [(each.shape, each.dtype.name) for each in made] == [((5, 7), "float32"), ((16,), "float32"), ((3, 5, 2), "int8")]
    assert calls.seen == [[11, made[1].ctypes.data, made[2].ctypes.data, made[0].ctypes.data, 44]]
    for each in made:
        assert each.flags.c_contiguous
        assert each.flags.writeable
        assert each.flags.aligned
        each[...] = 3
    assert made[0].ctypes.data % 64 == 0
    assert all((each == 3).all() for each in made)


def test_results_of_types_that_numpy_lacks_are_made() -> None:
    calls = Calls(Argument((40,), np.dtype(ml_dtypes.bfloat16), 1, Role.WRITTEN))
    (made,) = calls.make()
    assert made.dtype == ml_dtypes.bfloat16


def test_no_result_is_made_where_an_argument_does_not_fit(calls: Calls) -> None:
    assert [calls.make(), calls.make(np.zeros(SHAPE)), calls.make(np.zeros(SHAPE, F4), 1)] == [None] * 3
    assert calls.seen == []


def test_references_to_results_and_their_types_are_counted() -> None:
    kind = np.dtype([("a", np.int8)])  # one that nothing else refers to
    calls = Calls(Argument((3,), kind, 1, Role.WRITTEN), Argument((300,), kind, 2, Role.WRITTEN))
    before = sys.getrefcount(kind), sys.getrefcount(np.dtype(np.uint8)), sys.getrefcount(None)
    for _ in range(1000):
        small, large = calls.make()
        assert calls.make(1) is None
    assert sys.getrefcount(small) == sys.getrefcount(large) == 2
    assert sys.getrefcount(kind) == before[0] + 2
    died: list[bool] = []
    weakref.finalize(large.base, died.append, True)
    del small, large
    assert died == [True]
    after = sys.getrefcount(kind), sys.getrefcount(np.dtype(np.uint8)), sys.getrefcount(None)
    assert all(abs(now - then) < 50 for now, then in zip(after, before, strict=True))


def test_there_is_an_error_where_a_result_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = (1 << 30, 1 << 15)
    monkeypatch.setattr(builtin, "MAPPED", math.inf)
    calls = Calls(written((300,), 1), written(huge, 2))
    before = sys.getrefcount(F4)
    for _ in range(100):
        with pytest.raises(MemoryError):
            calls.make()
    assert calls.seen == []
    assert abs(sys.getrefcount(F4) - before) < 50


def test_what_is_very_large_is_not_made_here() -> None:
    assert Calls(written((MAPPED // 4 - 1,), 1)).making is not None
    assert Calls(written((3,), 1), written((MAPPED // 4,), 2)).making is None
