"""Blocks of memory that the host cannot reach, bands around them that nobody may write to, and a space of such blocks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from ansorlite.errors import DeviceLostError
from ansorlite.runtime.arguments import Array, numpy_type
from ansorlite.runtime.device import Memory

#: Bytes before and behind memory that is guarded, and what they hold.
BAND: Final = 4096
MARK: Final = 0xA5


class DeviceMemory:
    """An array in a block of a device's memory.

    Attributes:
        array: the host's copy of it; there is none before somebody wants it.
        owner: keeps the block.
    """

    def __init__(
        self, owner: Any, block: int, begin: int, shape: tuple[int, ...], dtype: str, array: Array | None = None
    ) -> None:
        """
        Args:
            block: where the block begins.
            begin: of the array, in bytes from there.
        """
        self.owner = owner
        self.address = block + begin
        self.nbytes = math.prod(shape) * numpy_type(dtype).itemsize
        self._block = block
        self._facts = (shape, dtype)
        self._array = array

    @property
    def array(self) -> Array:
        if self._array is None:
            shape, dtype = self._facts
            self._array = np.zeros(shape, numpy_type(dtype))
        return self._array

    @array.setter
    def array(self, array: Array) -> None:
        self._array = array

    @property
    def bands(self) -> tuple[int, int]:
        """Where the bands before and behind it begin, if it is guarded."""
        return self._block, self.address + self.nbytes

    def let_go(self) -> None:
        """Of the block, and of the host's copy."""
        self.owner, self.address, self._array = None, 0, np.empty(0, np.uint8)


class Guards:
    """What is guarded on one device."""

    def __init__(self) -> None:
        self._memories: WeakSet[DeviceMemory] = WeakSet()

    def add(self, memory: DeviceMemory) -> None:
        self._memories.add(memory)

    def remove(self, memory: DeviceMemory) -> None:
        self._memories.discard(memory)

    def check(self, memory: object, read: Callable[[int, Array], None]) -> None:
        """If ``memory`` is guarded, nobody may have written around anything that is.

        Args:
            read: what is at an address.

        Raises:
            DeviceLostError: somebody has: what else is in the device's memory cannot be trusted either.
        """
        if memory not in self._memories:
            return
        band = np.empty(BAND, np.uint8)
        for each in list(self._memories):
            for begin in each.bands:
                read(begin, band)
                if (band != MARK).any():
                    raise DeviceLostError("a program has written beside its arrays; what is in the device's memory may be spoilt")


class DeviceSpace(ABC):
    """What devices with memory of their own have in common: a :class:`~ansorlite.runtime.device.MemorySpace` without views."""

    #: numpy's own: what results are copied to may begin anywhere.
    maker: Callable[[int], Callable[..., Array]] = staticmethod(lambda _: np.empty)

    def __init__(self) -> None:
        self._guards = Guards()

    @abstractmethod
    def _block(self, nbytes: int, fill: int | None = None) -> tuple[Any, int]:
        """What keeps a block of so many bytes, and where it begins.

        Args:
            fill: what all of its bytes become; ``None``: it holds anything.

        Raises:
            MemoryLimitError: the device has none left.
        """

    @abstractmethod
    def _read(self, address: int, array: Array) -> None:
        """Copy what is at an address into an array of the host's, and wait for it."""

    @abstractmethod
    def copy_in(self, memory: Memory) -> None:
        """Copy ``memory.array`` to the device."""

    def alloc(self, nbytes: int) -> DeviceMemory:
        """So many bytes of zeros."""
        return DeviceMemory(*self._block(nbytes, 0), 0, (nbytes,), "uint8")

    def place(self, arrays: Sequence[Array]) -> tuple[list[int], Sequence[DeviceMemory]]:
        """Copies of them: what is on the device already needs no place (``device_kernel.py``)."""
        memories = []
        for array in arrays:
            memories.append(DeviceMemory(*self._block(array.nbytes), 0, array.shape, array.dtype.name, array))
            self.copy_in(memories[-1])
        return [memory.address for memory in memories], memories

    def copy_out(self, memory: Memory) -> None:
        """Waits for what was asked for before. Of guarded memory, nobody may have written around any.

        Raises:
            DeviceLostError: somebody has: what else is in the device's memory cannot be trusted either.
        """
        self._read(memory.address, memory.array)
        self._guards.check(memory, self._read)

    def free(self, memory: Memory) -> None:
        """Let go of the block, and of the host's copy."""
        assert isinstance(memory, DeviceMemory)
        self._guards.remove(memory)
        memory.let_go()

    def guarded(self, shape: tuple[int, ...], dtype: str) -> DeviceMemory:
        """Between two bands of bytes that nobody may change; whether somebody has is seen when it is copied out."""
        nbytes = math.prod(shape) * numpy_type(dtype).itemsize
        memory = DeviceMemory(*self._block(nbytes + 2 * BAND, MARK), BAND, shape, dtype)
        self._guards.add(memory)
        return memory

    def read_only(self, array: Array) -> DeviceMemory:
        """The same. That nobody stores to it is checked of the loops, not of the machine code."""
        memory = self.guarded(array.shape, array.dtype.name)
        memory.array = np.array(array, order="C")
        self.copy_in(memory)
        return memory
