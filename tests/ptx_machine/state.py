"""Registers and places of all threads that run at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine.counts import Counts
from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.memory import Memory
from tests.ptx_machine.text import BYTES, Kernel

WARP: Final = 32
_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_TYPES: Final = {
    **{f"{kind}{bits}": np.dtype(f"{'i' if kind == 's' else 'u'}{bits // 8}") for kind in "bus" for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "bf16": np.dtype(np.uint16),
}

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


def dtype_of(kind: str) -> np.dtype[Any]:
    """What numpy computes a type with; bfloat16 is its bits."""
    if kind not in _TYPES:
        raise PtxError(f"unknown type: {kind}")
    return _TYPES[kind]


@dataclass
class State:
    """
    Attributes:
        threads: of a block.
        blocks: numbers of those that run at once.
        names: addresses of variables.
        parameters: values of parameters.
        windows: where generic addresses of shared and local memory begin.
        pc: the next instruction of each thread.
        done, waiting: who has ended, and who waits at a barrier.
        held: who waits at an operation of a warp for its other lanes, or of a warpgroup for its other threads.
        parked: who waits for the end of a phase of an mbarrier.
        freed: those of them whom the last lane has just let go on.
        now: how many barriers each block has passed.
        flying: registers that products write which were not waited for: nobody else may touch them.
        changed: registers that were written since such products were last told that their registers are ready.
    """

    kernel: Kernel
    threads: int
    blocks: Ints
    grid: int
    shape: tuple[int, int, int]
    names: dict[str, int]
    parameters: dict[str, int]
    memories: dict[str, Memory]
    counts: Counts
    windows: tuple[int, int]
    registers: dict[str, NDArray[Any]] = field(default_factory=dict)
    copies: dict[int | str, Any] = field(default_factory=dict)
    freed: Mask | None = None
    flying: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.n = self.threads * len(self.blocks)
        self.lanes: Ints = np.arange(self.n)
        self.block: Ints = self.lanes // self.threads
        self.thread: Ints = self.lanes % self.threads
        self.now: Ints = np.zeros(len(self.blocks), np.int64)
        self.pc: Ints = np.zeros(self.n, np.int64)
        self.done: Mask = np.zeros(self.n, np.bool_)
        self.waiting: Mask = np.zeros(self.n, np.bool_)
        self.held: Mask = np.zeros(self.n, np.bool_)
        self.parked: Mask = np.zeros(self.n, np.bool_)
        self.warps_of_block = -(-self.threads // WARP)
        self.warp: Ints = self.block * self.warps_of_block + self.thread // WARP
        self.lane: Ints = self.thread % WARP
        #: Thread of each warp's lanes; -1 where a block's last warp is not full.
        number = np.arange(self.warps_of_block * WARP)
        whole = np.where(number < self.threads, number, -1)
        begins = np.arange(len(self.blocks)) * self.threads
        self.in_warp: Ints = np.where(whole < 0, -1, whole + begins[:, None]).reshape(-1, WARP)

    # Threads ------------------------------------------------------------------------------------------------------------
    def in_warps(self, mask: Mask) -> Mask:
        """(warps, 32) of a flag of threads."""
        if self.threads % WARP == 0:
            return mask.reshape(-1, WARP)
        return np.where(self.in_warp < 0, False, mask[self.in_warp])

    def whole_warps(self, values: NDArray[Any], fill: Any = 0) -> NDArray[Any]:
        """(warps, 32) of a value of each thread."""
        if self.threads % WARP == 0:
            return values.reshape(-1, WARP)
        result: NDArray[Any] = np.where(self.in_warp < 0, values.dtype.type(fill), values[self.in_warp])
        return result

    def from_warps(self, values: NDArray[Any]) -> NDArray[Any]:
        """The inverse of :meth:`whole_warps`."""
        result: NDArray[Any] = values[self.warp, self.lane]
        return result

    def release(self, blocks: Mask) -> None:
        """All threads of these blocks have reached the barrier."""
        self.waiting &= ~np.repeat(blocks, self.threads)
        self.now[blocks] += 1

    def times(self, mask: Mask) -> Ints:
        return self.now[self.block[mask]]

    def identities(self, mask: Mask) -> Ints:
        """Numbers of threads that no thread of another block has."""
        result: Ints = self.blocks[self.block[mask]] * self.threads + self.thread[mask]
        return result

    def identities_of(self, threads: Ints) -> Ints:
        """As :meth:`identities`, of threads by their numbers."""
        result: Ints = self.blocks[self.block[threads]] * self.threads + self.thread[threads]
        return result

    # Values -------------------------------------------------------------------------------------------------------------
    def predicate(self, name: str) -> Mask:
        flags = self.raw(name.lstrip("!")).astype(np.bool_)
        return ~flags if name[0] == "!" else flags

    def raw(self, name: str) -> NDArray[Any]:
        if name in self.flying:
            raise PtxError(f"{name} is read, but the product that writes it was not waited for")
        if name not in self.registers:
            raise PtxError(f"{name} is read, but nobody has set it")
        return self.registers[name]

    def value(self, operand: str, kind: str) -> NDArray[Any]:
        """An operand of all threads as a type."""
        if operand in self.flying:
            raise PtxError(f"{operand} is read, but the product that writes it was not waited for")
        dtype = dtype_of(kind)
        unsigned = _UNSIGNED[dtype.itemsize]
        if operand in self.registers:
            found = self.registers[operand]
            return found.view(dtype) if found.dtype.itemsize == dtype.itemsize else found.astype(unsigned).view(dtype)
        if operand[0] == "%":
            return self.special(operand, dtype)
        return np.full(self.n, self.literal(operand, dtype), unsigned).view(dtype)

    def literal(self, text: str, dtype: np.dtype[Any]) -> int:
        """Its bits."""
        if text[:2] in ("0f", "0F"):
            return int(text[2:], 16)
        if text[:2] in ("0d", "0D"):
            return int(text[2:], 16)
        base, _, offset = text.partition("+")
        if base in self.names:
            return self.names[base] + int(offset or 0)
        try:
            number = int(text.rstrip("Uu"), 0)
        except ValueError:
            raise PtxError(f"{text} is read, but nobody has set it") from None
        return number % (1 << 8 * dtype.itemsize)

    def special(self, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        stem, _, axis = name[1:].partition(".")
        x, y, _ = self.shape
        if stem == "tid":
            values = {"x": self.thread % x, "y": self.thread // x % y, "z": self.thread // (x * y)}[axis]
        elif stem == "ctaid":
            values = self.blocks[self.block] if axis == "x" else np.zeros(self.n, np.int64)
        elif stem in ("ntid", "nctaid"):
            sizes = self.shape if stem == "ntid" else (self.grid, 1, 1)
            values = np.full(self.n, sizes["xyz".index(axis)])
        elif name in ("%laneid", "%warpid"):
            values = self.lane if stem == "laneid" else self.thread // WARP
        else:
            raise PtxError(f"{name} is read, but nobody has set it")
        return values.astype(dtype)

    def put(self, name: str, values: NDArray[Any], mask: Mask) -> None:
        """Set a register of the threads of ``mask``."""
        if name == "_":
            return
        if name in self.flying:
            raise PtxError(f"{name} is written, but the product that writes it was not waited for")
        self.changed.add(name)
        width = self.kernel.widths.get(name)
        if width is None:
            raise PtxError(f"{name} is no register")
        if values.dtype == np.bool_:
            values = values.astype(np.uint8)
        bits = np.ascontiguousarray(values).view(_UNSIGNED[values.dtype.itemsize])
        if bits.dtype.itemsize != width:
            bits = bits.astype(_UNSIGNED[width])
        if mask.all():
            self.registers[name] = bits
            return
        old = self.registers.get(name)
        self.registers[name] = np.where(mask, bits, np.zeros_like(bits) if old is None else old)

    def address(self, operand: str) -> Ints:
        """Of ``[register+offset]`` or ``[variable+offset]``."""
        inside = operand.strip("[]").replace("+-", "-")
        for sign in ("+", "-"):
            base, found, offset = inside.partition(sign)
            if found:
                break
        else:
            base, offset, sign = inside, "0", "+"
        step = int(offset, 0) * (-1 if sign == "-" else 1)
        if base in self.names:
            return np.full(self.n, self.names[base] + step, np.int64)
        if base[0] not in "%" and base not in self.registers:
            return np.full(self.n, int(base, 0) + step, np.int64)
        found_values = self.raw(base)
        result: Ints = found_values.astype(np.int64) + step
        return result


def width(kind: str) -> int:
    return BYTES[kind]
