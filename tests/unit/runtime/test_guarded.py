"""Arrays that a program may not overrun, and inputs that it may not write."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal

import numpy as np
import pytest

from ansorlite.alignment import ALIGNMENT
from ansorlite.runtime.guarded import guarded, read_only

SHAPES = [(), (1,), (3, 5), (1024,), (1025,), (2, 1 << 20)]


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_guarded_arrays_are_arrays(shape: tuple[int, ...], dtype: str) -> None:
    array = guarded(shape, dtype)
    assert array.shape == shape
    assert array.ctypes.data % ALIGNMENT == 0
    array[...] = 1
    assert (array == 1).all()


def test_a_read_only_copy_has_the_values() -> None:
    original = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(read_only(original), original)
    with pytest.raises(ValueError, match="read-only"):
        read_only(original)[0] = 1


def dies_of(address: int, write: bool) -> bool:
    """Whether a process that touches ``address`` dies of it."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        if write:
            ctypes.memset(address, 0, 1)
        else:
            ctypes.string_at(address, 1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV


@pytest.mark.parametrize("shape", SHAPES)
def test_touching_what_must_not_be_touched_is_fatal(shape: tuple[int, ...]) -> None:
    output, fixed = guarded(shape, "float32"), read_only(np.zeros(shape, np.float32))
    for array in (output, fixed):
        beyond = array.ctypes.data + -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        assert not dies_of(beyond - 1, write=False)
        assert dies_of(beyond, write=False)
    assert not dies_of(output.ctypes.data, write=True)
    assert dies_of(fixed.ctypes.data, write=True)
