"""A compiled kernel as data."""

from __future__ import annotations

from dataclasses import dataclass

from ansorlite.loops.kernel_module import When


@dataclass(frozen=True)
class CompiledLaunch:
    """A launch of a kernel module, compiled.

    Attributes:
        symbol: of the function.
        when: it is launched.
        workspace: bytes that it needs for temporaries.
    """

    symbol: str
    when: When
    workspace: int


@dataclass(frozen=True)
class Object:
    """A compiled kernel: data only, so it can be pickled, kept and sent.

    The entry is a C function ``void entry(void **arguments)`` that makes all launches of a call: the addresses of the parameters
    in call order, then those of the workspace and of the block of what is prepared (both 64-byte aligned). Beside it,
    ``void entry_repeat(void **arguments, int64_t count)`` calls it in a row; and where ``prepared`` is not 0,
    ``void entry_prepare(void **arguments)`` makes the launches that fill that block from the constants among the parameters, and
    must have run before the entry.

    Attributes:
        code: an object file.
        loops: the loop IR of its functions as text: the loops that run.
        llvm: the LLVM IR before optimisation.
        entry: the symbol of the entry.
        outputs: how many of the last parameters are written.
        launches: in order.
        prepared: bytes of what is prepared.
        unread: positions of the parameters that the entry itself does not read: their addresses may be anything.
        target: key of the target it is for.
        promotes: whether LLVM was left to find registers for sums that are kept in memory.
    """

    code: bytes
    loops: str
    llvm: str
    entry: str
    outputs: int
    launches: tuple[CompiledLaunch, ...]
    prepared: int
    unread: tuple[int, ...]
    target: str
    promotes: bool

    @property
    def repeat(self) -> str:
        """The symbol of the function that calls the entry many times."""
        return f"{self.entry}_repeat"

    @property
    def prepare(self) -> str:
        """The symbol of the function that prepares, if anything is."""
        return f"{self.entry}_prepare"

    @property
    def workspace(self) -> int:
        """Bytes that a call needs for its temporaries."""
        return self._workspace(When.CALL)

    @property
    def prepare_workspace(self) -> int:
        """Bytes that preparing needs for its own."""
        return self._workspace(When.ONCE)

    def _workspace(self, when: When) -> int:
        return max((launch.workspace for launch in self.launches if launch.when is when), default=0)
