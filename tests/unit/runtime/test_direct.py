"""Builtin functions of arrays: what they run on, and what they leave alone."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np
import pytest

from ansorlite.runtime.builtin import Argument, Direct
from ansorlite.runtime.direct import direct_call

F4 = np.dtype(np.float32)
SHAPE = (2, 3)


class Calls:
    """A function for native code to call, which notes the addresses that it gets: two of arrays between two of others."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []
        self._native = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))(self._note)
        function = ctypes.cast(self._native, ctypes.c_void_p).value
        assert function is not None
        arguments = [Argument(SHAPE, F4, 2, False), Argument((), np.dtype(np.int64), 1, True)]
        self.direct: Direct = direct_call(function, [11, 0, 0, 44], arguments)

    def _note(self, addresses: ctypes._Pointer[ctypes.c_void_p]) -> None:
        self.seen.append([addresses[slot] or 0 for slot in range(4)])


@pytest.fixture
def calls() -> Calls:
    return Calls()


def test_every_address_is_in_its_slot(calls: Calls) -> None:
    x, y = np.zeros(SHAPE, F4), np.zeros((), np.int64)
    assert calls.direct(x, y) is True
    assert calls.seen == [[11, y.ctypes.data, x.ctypes.data, 44]]


def test_views_and_read_only_inputs_are_fine(calls: Calls) -> None:
    rows = np.zeros((5, 3), F4)
    rows.flags.writeable = False
    y = np.zeros((), np.int64)
    assert calls.direct(rows[3:], y) is True
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
    assert calls.direct(x(), np.zeros((), np.int64)) is False
    assert calls.seen == []


def test_nothing_happens_where_results_have_no_place(calls: Calls) -> None:
    both = np.zeros(8, np.int64)
    x = both[1:4].view(F4).reshape(SHAPE)
    assert calls.direct(x, _read_only()) is False
    for inside in (1, 2, 3):
        assert calls.direct(x, both[inside : inside + 1].reshape(())) is False
    assert calls.seen == []
    for beside in (0, 4):
        assert calls.direct(x, both[beside : beside + 1].reshape(())) is True
    assert len(calls.seen) == 2


def test_the_number_of_arguments_counts(calls: Calls) -> None:
    x, y = np.zeros(SHAPE, F4), np.zeros((), np.int64)
    assert [calls.direct(), calls.direct(x), calls.direct(x, y, y)] == [False] * 3
    assert calls.seen == []


def test_arguments_are_not_kept(calls: Calls) -> None:
    x, y = np.zeros(SHAPE, F4), np.zeros((), np.int64)
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        calls.direct(x, y)
        calls.direct(y, x)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before
