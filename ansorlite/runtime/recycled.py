"""Memory of large results, used again once nobody has a result in it any more.

The C library gives memory from :data:`MAPPED` bytes on back to the system whenever an array dies. What it gets for the next one
are new pages, which the system has to clear first: that may take as long as the kernel. A kernel that is called again and again
keeps two blocks instead, one for the result that the caller still has and one for the next.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.runtime.pages import let_go, zeros

Array: TypeAlias = np.ndarray[Any, Any]

#: Bytes from which on the C library maps every array anew: its limit moves with what is freed, but not beyond this.
MAPPED: Final = 32 << 20

#: Blocks of one size that are kept for results to come.
_KEPT: Final = 2


class Recycled:
    """Makes uninitialised results, the large ones in memory of earlier results that are gone.

    A block that waits for the next result is the system's to take. Threads may share this.
    """

    def __init__(self, smaller: Callable[[tuple[int, ...], np.dtype[Any]], Array]) -> None:
        """
        Args:
            smaller: makes those of fewer than :data:`MAPPED` bytes.
        """
        self._smaller = smaller
        self._idle: defaultdict[int, list[Array]] = defaultdict(list)  # by bytes

    def __call__(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
        """A result, for a caller to keep.

        Raises:
            MemoryError: there is no room for it.
        """
        nbytes = math.prod(shape) * kind.itemsize
        if nbytes < MAPPED:
            return self._smaller(shape, kind)
        idle = self._idle[nbytes]
        try:
            block = idle.pop()  # atomic, as is append: there need not be a lock
        except IndexError:
            block = zeros(nbytes)
        # Views of a result, and what else shares its memory, refer to what it is made of: the lease is gone when all of them are.
        lease = (ctypes.c_char * nbytes).from_buffer(block.data)
        weakref.finalize(lease, _returned, idle, block).atexit = False
        return np.ndarray(shape, kind, memoryview(lease))


def _returned(idle: list[Array], block: Array) -> None:
    if len(idle) < _KEPT:
        let_go(block)
        idle.append(block)
