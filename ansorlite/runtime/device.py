"""What runs programs, behind one interface: its memory, its loader, its clock.

A program is launched with addresses: of its parameters in call order, then of a workspace and of the block of what is prepared.
On any device an address is an integer, and the addresses of a launch are packed as an array of 64-bit words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ansorlite.runtime.arguments import Array
from ansorlite.runtime.builtin import Argument, DirectCalls

if TYPE_CHECKING:
    from ansorlite.codegen.entry import EntryStep
    from ansorlite.codegen.object import Compiled
    from ansorlite.runtime.peaks import Peaks
    from ansorlite.target import Target


class Memory(Protocol):
    """A block of a device's memory; it is there for as long as this exists, unless it is freed.

    Attributes:
        array: the host's side of it: the block itself where the host can use that, else a copy.
        address: where it begins on the device.
    """

    array: Array
    address: int


class MemorySpace(Protocol):
    """The memory of a device."""

    def maker(self, nbytes: int) -> Callable[[tuple[int, ...], Any], Array]:
        """What makes an uninitialised array of a shape and dtype, for a caller to keep: a result, of at most ``nbytes``."""

    def alloc(self, nbytes: int) -> Memory:
        """A block of zero bytes that begins at a cache line.

        Raises:
            MemoryError: there is no room for it.
        """

    def place(self, arrays: Sequence[Array]) -> tuple[list[int], Sequence[Memory]]:
        """Let programs use contiguous arrays.

        Returns:
            The address of each; and the memory of each, with the array as the host's side, for as long as programs use it: none
            where they all are used where they are.
        """

    def copy_in(self, memory: Memory) -> None:
        """Let the device see what the host has stored to ``memory.array``."""

    def copy_out(self, memory: Memory) -> None:
        """Let the host see in ``memory.array`` what the device has stored."""

    def view(self, address: int, shape: tuple[int, ...], dtype: str) -> Array:
        """An array on memory of the device that somebody else keeps, for what runs in Python."""

    def free(self, memory: Memory) -> None:
        """Give ``memory`` back now. Nobody may use it any more."""


class LoadedKernel(Protocol):
    """A kernel on a device, callable for as long as this exists. Each function takes the packed addresses of a launch."""

    @property
    def call(self) -> Callable[[bytes], None]:
        """Make the launches of a call."""

    @property
    def repeat(self) -> Callable[[bytes, int], None]:
        """The same, so many times in a row."""

    @property
    def prepare(self) -> Callable[[bytes], None]:
        """Make the launches that come before the first of the calls with these constants."""

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls | None:
        """``call`` as builtin functions of arrays; ``None`` where there is no such shortcut.

        Args:
            fixed: all addresses; those of ``arguments`` are replaced.
        """


class LoadedSteps(Protocol):
    """Calls of kernels and copies in a row, as one, on a few blocks of memory."""

    @property
    def run(self) -> Callable[[bytes], None]:
        """Takes the packed addresses of the blocks."""

    def profile(self, bases: bytes) -> list[int]:
        """Run them; the nanoseconds that each step took."""

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls | None:
        """As a kernel's."""


class Device(MemorySpace, Protocol):
    """What programs for one target run on."""

    @property
    def target(self) -> Target:
        """What its programs are compiled for."""

    def load(self, compiled: Compiled) -> LoadedKernel:
        """Load a kernel.

        Raises:
            TargetError: it is for another target, or cannot run here.
        """

    def link(self, steps: Sequence[EntryStep], kernels: Mapping[str, LoadedKernel]) -> LoadedSteps:
        """Make one of many steps.

        Args:
            kernels: those that the steps call, by the names that they have there; the caller keeps them.
        """

    def guarded(self, shape: tuple[int, ...], dtype: str) -> Memory:
        """Memory of an array. What a wrong program does behind its end ends the process, and spoils nothing else."""

    def read_only(self, array: Array) -> Memory:
        """The same with a copy of ``array``, which no program can change."""

    def time(self, run: Callable[[int], None], calls: int) -> float:
        """Seconds that ``run(calls)`` takes until the device has done all of it."""

    def finish(self) -> None:
        """Wait until all is done that was asked for."""

    def sweeper(self, nbytes: int) -> Callable[[], None]:
        """What overwrites so many bytes of its memory, so that its caches hold nothing else."""

    def disturbances(self) -> int:
        """How often something else took what this process's programs run on from them, so far."""

    def peaks(self, threads: int) -> Peaks:
        """What it can do at best, measured. Takes some seconds."""
