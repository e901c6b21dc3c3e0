"""Memory by pages, some of which nobody may touch. Needs nothing but Python and numpy: it runs on boards, too."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np

from ansorlite.alignment import ALIGNMENT

_LIBC = ctypes.CDLL(None, use_errno=True)

#: numpy asks for huge pages for arrays from this size on; so must we, to time what users will see.
_HUGE_BYTES = 1 << 22


def guarded_bytes(nbytes: int) -> np.ndarray[Any, Any]:
    """Bytes that begin at a cache line and end (but for less than one) where a page begins that nobody may touch."""
    size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size + mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if nbytes >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(pages, np.uint8)
    _protect(raw.ctypes.data + size, mmap.PAGESIZE, 0)
    start = (size - nbytes) // ALIGNMENT * ALIGNMENT
    return raw[start : start + nbytes]


def make_read_only(array: np.ndarray[Any, Any]) -> None:
    """Let nobody, machine code included, write to the pages of an array any more."""
    array.flags.writeable = False
    first = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    last = -(-(array.ctypes.data + array.nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
    _protect(first, last - first, mmap.PROT_READ)


def _protect(address: int, size: int, protection: int) -> None:
    if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
