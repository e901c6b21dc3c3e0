"""Memory for what is temporary: one block for each call that is going on, kept for the next."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Final

import numpy as np

from ansorlite.alignment import aligned
from ansorlite.errors import MemoryLimitError
from ansorlite.runtime.arguments import Array, address_of
from ansorlite.runtime.device import Memory, MemorySpace
from ansorlite.runtime.memory import no_room

#: Bytes of a large page.
LARGE_PAGE: Final = 2 << 20


def workspace(space: MemorySpace, nbytes: int) -> Memory:
    """A block for temporaries.

    Raises:
        MemoryLimitError: there is no room for it.
    """
    (size,) = workspace_shape(nbytes)
    try:
        return space.alloc(size)
    except MemoryLimitError:
        raise  # a device says more of itself
    except MemoryError:
        raise no_room("temporaries", nbytes) from None


def workspace_shape(nbytes: int) -> tuple[int]:
    """The shape of a block with room for ``nbytes``: whole cache lines, one at least."""
    return (aligned(max(1, nbytes)),)


def zeros(nbytes: int) -> Array:
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
    start = -address_of(whole) % LARGE_PAGE if large else 0
    if large:
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE, start, large)
    return whole[start : start + nbytes]


class WorkspacePool:
    """Blocks of one size; as many as there were calls at the same time. Threads share it."""

    def __init__(self, space: MemorySpace, nbytes: int) -> None:
        self._space = space
        self._nbytes = nbytes
        self._idle: list[Memory] = []

    def take(self) -> Memory:
        """A block that nobody else has, until it is given back."""
        try:
            return self._idle.pop()  # atomic, as is append: there need not be a lock
        except IndexError:
            pass
        return workspace(self._space, self._nbytes)

    def give(self, block: Memory) -> None:
        self._idle.append(block)
