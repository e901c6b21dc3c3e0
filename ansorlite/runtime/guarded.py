"""Memory in which a program's mistakes show at once, and in its own measurement, instead of spoiling the next one."""

from __future__ import annotations

import numpy as np

from ansorlite.runtime.arguments import Array
from ansorlite.runtime.pages import guarded_bytes, make_read_only
from ansorlite.te import dtypes


def guarded(shape: tuple[int, ...], dtype: str) -> Array:
    """An aligned array that ends (but for less than a cache line) where a page begins that nobody may touch."""
    kind = dtypes.NUMPY[dtype]
    nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return guarded_bytes(nbytes).view(kind).reshape(shape)


def read_only(array: Array) -> Array:
    """A guarded copy of ``array`` that nobody, machine code included, can write to."""
    copy = guarded(array.shape, array.dtype.name)
    copy[...] = array
    make_read_only(copy)
    return copy
