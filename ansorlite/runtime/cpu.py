"""The CPU as a device: numpy's arrays where they are, LLVM's linker, the thread team, the clock on the wall."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ansorlite import runtime
from ansorlite.codegen.entry import EntryStep
from ansorlite.codegen.object import Compiled
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.device import LoadedKernel
from ansorlite.runtime.guarded import guarded, read_only
from ansorlite.runtime.host import HostMemory, HostSpace
from ansorlite.runtime.load import Loaded, LoadedEntry
from ansorlite.runtime.own import own_object
from ansorlite.runtime.timing import preemptions, sweeper, wall_clock
from ansorlite.target import Target

if TYPE_CHECKING:
    from ansorlite.runtime.peaks import Peaks


class Cpu(HostSpace):
    """A :class:`~ansorlite.runtime.device.Device`: the cores of this machine that ``target`` names."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def load(self, compiled: Compiled) -> Loaded:
        """Link a kernel into this process.

        Raises:
            TargetError: it was compiled for another target, cannot run here, or needs a library that is not there.
        """
        return Loaded(own_object(compiled, self.target), self.target)

    def link(self, steps: Sequence[EntryStep], kernels: Mapping[str, LoadedKernel]) -> LoadedEntry:
        """Compile what calls the kernels in a row."""
        addresses = {name: kernel.address for name, kernel in kernels.items() if isinstance(kernel, Loaded)}
        return LoadedEntry(steps, addresses, self.target)

    def guarded(self, shape: tuple[int, ...], dtype: str) -> HostMemory:
        return HostMemory(guarded(shape, dtype))

    def read_only(self, array: Array) -> HostMemory:
        return HostMemory(read_only(array))

    def time(self, run: Callable[[int], None], calls: int) -> float:
        return wall_clock(run, calls)

    def finish(self) -> None:
        """It does what it is asked for at once."""

    def sweeper(self, nbytes: int) -> Callable[[], None]:
        return sweeper(nbytes)

    def disturbances(self) -> int:
        """How often threads of this process have lost their core to another process."""
        return preemptions()

    def peaks(self, threads: int) -> Peaks:
        return runtime.measure_peaks(self.target, threads)
