"""Memory for what is temporary: one block for each call that is going on, kept for the next."""

from __future__ import annotations

from ansorlite.runtime.arguments import ALIGNMENT, empty


class Workspace:
    """A block that begins at a cache line.

    Attributes:
        memory: its bytes.
        address: where it begins.
    """

    def __init__(self, nbytes: int) -> None:
        self.memory = empty(workspace_shape(nbytes), "uint8")
        self.address: int = self.memory.ctypes.data


def workspace_shape(nbytes: int) -> tuple[int]:
    """The shape of a block with room for ``nbytes``: whole cache lines, one at least."""
    return (max(1, -(-nbytes // ALIGNMENT)) * ALIGNMENT,)


class WorkspacePool:
    """Blocks of one size; as many as there were calls at the same time. Threads share it."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes
        self._idle: list[Workspace] = []

    def take(self) -> Workspace:
        """A block that nobody else has, until it is given back."""
        try:
            return self._idle.pop()  # atomic, as is append: there need not be a lock
        except IndexError:
            return Workspace(self._nbytes)

    def give(self, workspace: Workspace) -> None:
        self._idle.append(workspace)
