"""A compiled kernel as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

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
class Compiled:
    """A compiled kernel, whatever runs it: data only, so it can be pickled, kept and sent.

    A launch is given addresses: those of the parameters in call order, then those of the workspace and of the block of what is
    prepared.

    Attributes:
        code: what a device loads.
        loops: the loop IR of its functions as text: the loops that run.
        llvm: the LLVM IR before optimisation; empty where the code was made without LLVM.
        outputs: how many of the last parameters are written.
        launches: in order.
        prepared: bytes of what is prepared.
        unread: positions of the parameters that calls do not read: their addresses may be anything.
        target: key of the target it is for.
    """

    code: bytes
    loops: str
    llvm: str
    outputs: int
    launches: tuple[CompiledLaunch, ...]
    prepared: int
    unread: tuple[int, ...]
    target: str

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


@dataclass(frozen=True)
class Object(Compiled):
    """A kernel for a CPU: its code is an object file.

    The entry is a C function ``void entry(void **arguments)`` that makes all launches of a call; the workspace and the block of
    what is prepared are 64-byte aligned. Beside it, ``void entry_repeat(void **arguments, int64_t count)`` calls it in a row; and
    where ``prepared`` is not 0, ``void entry_prepare(void **arguments)`` makes the launches that fill that block from the
    constants among the parameters, and must have run before the entry.

    Attributes:
        entry: the symbol of the entry.
        promotes: whether LLVM was left to find registers for sums that are kept in memory.
    """

    entry: str
    promotes: bool

    @property
    def repeat(self) -> str:
        """The symbol of the function that calls the entry many times."""
        return f"{self.entry}_repeat"

    @property
    def prepare(self) -> str:
        """The symbol of the function that prepares, if anything is."""
        return f"{self.entry}_prepare"


class Form(Enum):
    """What the code of a :class:`DeviceObject` is."""

    CUBIN = "machine code of one kind of NVIDIA GPU"
    PTX = "assembly of NVIDIA GPUs, which the driver compiles when it is loaded"
    OPENCL = "OpenCL C, which the driver compiles when it is loaded"


@dataclass(frozen=True)
class Slot:
    """Where an array of a launch begins.

    Attributes:
        base: position of an address among those that the launch is given.
        offset: bytes from there.
    """

    base: int
    offset: int


@dataclass(frozen=True)
class Report:
    """What the assembler says of a kernel for a GPU.

    Attributes:
        registers: of a thread.
        spilled: bytes that a thread stores and loads because it has too few.
        frame: bytes of memory of its own.
    """

    registers: int
    spilled: int
    frame: int


@dataclass(frozen=True)
class DeviceLaunch(CompiledLaunch):
    """A launch of a kernel on a device.

    Attributes:
        grid: blocks.
        threads: of a block.
        shared: bytes of a block's shared memory, which the launch asks for.
        arguments: of the kernel: one array each.
        report: ``None`` where nothing assembled it yet: the driver will.
    """

    grid: int
    threads: int
    shared: int
    arguments: tuple[Slot, ...]
    report: Report | None

    def reported(self, report: Report | None) -> DeviceLaunch:
        """This launch, assembled."""
        return replace(self, report=report)


@dataclass(frozen=True)
class DeviceObject(Compiled):
    """A kernel for a device that is told by its driver what to launch. Its launches are :class:`DeviceLaunch`.

    Attributes:
        form: what its code is.
        text: the code as people read it: PTX, or OpenCL C.
    """

    form: Form
    text: str

    @property
    def reports(self) -> tuple[Report, ...]:
        """What the assembler said of each launch; empty where nothing assembled them yet."""
        found = (launch.report for launch in self.launches if isinstance(launch, DeviceLaunch))
        return tuple(report for report in found if report is not None)

    def at(self, when: When) -> tuple[DeviceLaunch, ...]:
        """Its launches of one time, in order."""
        return tuple(launch for launch in self.launches if isinstance(launch, DeviceLaunch) and launch.when is when)
