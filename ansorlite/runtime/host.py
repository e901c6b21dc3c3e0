"""The memory of a CPU is the host's: every array is where programs can use it."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ansorlite.runtime.arguments import Array, address_of, empty, maker, numpy_type
from ansorlite.runtime.device import Memory
from ansorlite.runtime.pages import LARGE_PAGE, zeros

_NOTHING: Final = np.empty(0, np.uint8)


class HostMemory:
    """An array as memory of a device; it keeps the array."""

    __slots__ = ("address", "array")

    def __init__(self, array: Array) -> None:
        self.array = array
        self.address = address_of(array)


class HostSpace:
    """Memory of this process. Nothing is copied: the host's side of a block is the block."""

    maker: Callable[[int], Callable[..., Array]] = staticmethod(maker)

    def alloc(self, nbytes: int) -> HostMemory:
        """In large pages where it is large enough for one."""
        if nbytes >= LARGE_PAGE:
            return HostMemory(zeros(nbytes))
        block = empty((nbytes,), "uint8")
        block.fill(0)
        return HostMemory(block)

    def place(self, arrays: Sequence[Array]) -> tuple[list[int], Sequence[HostMemory]]:
        """Where they are."""
        return list(map(address_of, arrays)), ()

    def copy_in(self, memory: Memory) -> None:
        """The device sees it already."""

    def copy_out(self, memory: Memory) -> None:
        """The host sees it already."""

    def view(self, address: int, shape: tuple[int, ...], dtype: str) -> Array:
        kind: np.dtype[Any] = numpy_type(dtype)
        memory = (ctypes.c_char * (math.prod(shape) * kind.itemsize)).from_address(address)
        return np.ndarray(shape, kind, memoryview(memory))

    def free(self, memory: Memory) -> None:
        memory.array, memory.address = _NOTHING, 0
