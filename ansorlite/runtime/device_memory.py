"""Blocks of memory that the host cannot reach, and bands around them that nobody may write to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from ansorlite.errors import DeviceLostError
from ansorlite.runtime.arguments import Array, numpy_type

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
