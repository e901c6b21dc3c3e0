"""Memory for what is temporary: one block for each call that is going on, kept for the next."""

from __future__ import annotations

from ansorlite.alignment import aligned
from ansorlite.errors import MemoryLimitError
from ansorlite.runtime.device import Memory, MemorySpace
from ansorlite.runtime.memory import no_room


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
