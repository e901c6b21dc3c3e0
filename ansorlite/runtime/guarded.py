"""Memory in which a program's mistakes show at once, and in its own measurement, instead of spoiling the next one."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np

from ansorlite.alignment import ALIGNMENT
from ansorlite.runtime.arguments import Array
from ansorlite.te import dtypes

_LIBC = ctypes.CDLL(None, use_errno=True)

#: numpy asks for huge pages for arrays from this size on; so must we, to time what users will see.
_HUGE_BYTES = 1 << 22


def guarded(shape: tuple[int, ...], dtype: str) -> Array:
    """An aligned array that ends (but for less than a cache line) where a page begins that nobody may touch."""
    kind = dtypes.NUMPY[dtype]
    nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size + mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if nbytes >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(pages, np.uint8)
    _protect(raw.ctypes.data + size, mmap.PAGESIZE, 0)
    start = (size - nbytes) // ALIGNMENT * ALIGNMENT
    return raw[start : start + nbytes].view(kind).reshape(shape)


def read_only(array: Array) -> Array:
    """A guarded copy of ``array`` that nobody, machine code included, can write to."""
    copy = guarded(array.shape, array.dtype.name)
    copy[...] = array
    copy.flags.writeable = False
    first = copy.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    last = -(-(copy.ctypes.data + copy.nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
    _protect(first, last - first, mmap.PROT_READ)
    return copy


def _protect(address: int, size: int, protection: int) -> None:
    if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
