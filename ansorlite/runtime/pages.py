"""Memory by pages, some of which nobody may touch. Needs nothing but Python and numpy: it runs on boards, too."""

from __future__ import annotations

import ctypes
import mmap
import os
from contextlib import suppress
from typing import Any, Final

import numpy as np

from ansorlite.alignment import ALIGNMENT

_LIBC = ctypes.CDLL(None, use_errno=True)

#: Bytes of a large page.
LARGE_PAGE: Final = 2 << 20

#: numpy asks for huge pages for arrays from this size on; so must we, to time what users will see.
_HUGE_BYTES: Final = 1 << 22


def zeros(nbytes: int) -> np.ndarray[Any, Any]:
    """A block of zero bytes, as the system gives them: no page is touched before its owner does.

    Not ``numpy.zeros``: what is large comes in large pages here, which the address caches hold. It begins at one; what is left
    over at its end is in small ones. A system that has none gives small ones.

    Raises:
        MemoryError: there is no room for it.
    """
    large = nbytes // LARGE_PAGE * LARGE_PAGE
    try:
        memory = mmap.mmap(-1, max(1, nbytes + (LARGE_PAGE if large else 0)), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no room for {nbytes} bytes") from error
    whole = np.frombuffer(memory, np.uint8)
    start = -whole.ctypes.data % LARGE_PAGE if large else 0
    if large:
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE, start, large)
    return whole[start : start + nbytes]


def let_go(block: np.ndarray[Any, Any]) -> None:
    """Let the system take the whole pages of a block when it is short of memory, until they are written to again.

    What is in them may be lost. They are there at once as long as the system had no need of them.
    """
    if hasattr(mmap, "MADV_FREE"):
        begin = -(-block.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (block.ctypes.data + block.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        _LIBC.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(max(0, end - begin)), mmap.MADV_FREE)


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
