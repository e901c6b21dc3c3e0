"""A device whose memory is not the host's: what is not copied is not seen. It stands for accelerators where there is none.

It is this machine's CPU on memory of its own, and a row of each table: as another kind of machine is added to ansorlite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from ansorlite.codegen.entry import EntryStep
from ansorlite.codegen.object import Object
from ansorlite.platforms import PLATFORMS
from ansorlite.runtime.arguments import Array, address_of, empty
from ansorlite.runtime.builtin import Argument
from ansorlite.runtime.cpu import Cpu
from ansorlite.runtime.device import LoadedKernel, Memory
from ansorlite.runtime.devices import DEVICES, device_of
from ansorlite.runtime.load import Loaded, LoadedEntry
from ansorlite.target import Target, this_machine


class FarMemory:
    """``array`` is the host's side; launches are given the address of other memory."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.far = empty(array.shape, array.dtype.name)
        self.far.reshape(-1).view(np.uint8)[...] = 0xA5
        self.address = address_of(self.far)


class _FarKernel(Loaded):
    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> None:  # type: ignore[override]
        """There is no shortcut."""


class _FarSteps(LoadedEntry):
    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> None:  # type: ignore[override]
        """There is no shortcut."""


class Far(Cpu):
    """
    Attributes:
        freed: how many blocks were given back.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.freed = 0

    def alloc(self, nbytes: int) -> FarMemory:
        made = FarMemory(np.zeros(nbytes, np.uint8))
        self.copy_in(made)
        return made

    def place(self, arrays: Sequence[Array]) -> tuple[list[int], Sequence[FarMemory]]:  # type: ignore[override]
        memories = [FarMemory(array) for array in arrays]
        for memory in memories:
            self.copy_in(memory)
        return [memory.address for memory in memories], memories

    def guarded(self, shape: tuple[int, ...], dtype: str) -> FarMemory:  # type: ignore[override]
        return FarMemory(empty(shape, dtype))

    def read_only(self, array: Array) -> FarMemory:  # type: ignore[override]
        _, (made,) = self.place([array.copy()])
        return made

    def copy_in(self, memory: Memory) -> None:
        assert isinstance(memory, FarMemory)
        memory.far[...] = memory.array

    def copy_out(self, memory: Memory) -> None:
        assert isinstance(memory, FarMemory)
        memory.array[...] = memory.far

    def free(self, memory: Memory) -> None:
        self.freed += 1
        super().free(memory)

    def load(self, compiled: Object) -> Loaded:
        return _FarKernel(compiled, self.target)

    def link(self, steps: Sequence[EntryStep], kernels: Mapping[str, LoadedKernel]) -> LoadedEntry:
        addresses = {name: kernel.address for name, kernel in kernels.items() if isinstance(kernel, Loaded)}
        return _FarSteps(steps, addresses, self.target)


def far(monkeypatch: pytest.MonkeyPatch) -> Target:
    """The target whose programs run on such a device, for the time of a test."""
    here = this_machine(threads=2)
    target = replace(here, kind="far")
    monkeypatch.setitem(DEVICES, target.platform, Far)  # type: ignore[arg-type]
    monkeypatch.setitem(PLATFORMS, target.platform, replace(PLATFORMS[here.platform], device=Far))  # type: ignore[arg-type]
    device_of.cache_clear()
    return target
