"""Loads, stores, atomics; addresses that tell their space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.state import Ints, Mask, State, dtype_of, width
from tests.ptx_machine.text import Instruction

_SPACES: Final = ("global", "shared", "local", "const")


def elements(operand: str) -> list[str]:
    """The registers of ``{a, b}``, or of ``a``."""
    return operand.strip("{}").split(",")


def _lanes_of(instruction: Instruction) -> int:
    return next((int(word[1:]) for word in instruction.operation if word in ("v2", "v4", "v8")), 1)


def spaces(s: State, instruction: Instruction, addresses: Ints, mask: Mask) -> list[tuple[str, Ints, Mask]]:
    """The parts of an access by space: (space, addresses in it, threads)."""
    named = [word.split("::")[0] for word in instruction.operation if word.split("::")[0] in _SPACES]
    if named:
        return [("global" if named[0] == "const" else named[0], addresses, mask)]
    shared, local = s.windows
    parts = []
    for space, low, high in (("global", 0, shared), ("shared", shared, local), ("local", local, 1 << 62)):
        here = mask & (addresses >= low) & (addresses < high)
        if here.any():
            parts.append((space, addresses - low, here))
    return parts


def note(s: State, space: str, addresses: Ints, mask: Mask, nbytes: int) -> None:
    """Count an access."""
    if space == "shared":
        s.counts.shared(s.warp[mask], s.lane[mask], addresses[mask], nbytes)
    elif space == "global":
        s.counts.memory(s.warp[mask], addresses[mask], nbytes)


def parts_of(s: State, space: str, mask: Mask) -> Ints:
    """Which part of a space each thread has: its block's, its own."""
    return s.lanes[mask] if space == "local" else s.block[mask]


def read(s: State, space: str, addresses: Ints, mask: Mask, nbytes: int, text: str) -> NDArray[np.uint8]:
    """(threads of mask, nbytes)"""
    memory = s.memories[space]
    at = memory.place(addresses[mask], parts_of(s, space, mask), nbytes, text)
    if space != "local":
        memory.note_load(at, nbytes, s.identities(mask), s.times(mask), text)
    note(s, space, addresses, mask, nbytes)
    return memory.load(at, nbytes)


def write(s: State, space: str, addresses: Ints, mask: Mask, values: NDArray[np.uint8], text: str) -> None:
    memory = s.memories[space]
    nbytes = values.shape[1]
    at = memory.place(addresses[mask], parts_of(s, space, mask), nbytes, text)
    if space != "local":
        memory.note_store(at, values, s.identities(mask), s.times(mask), text)
    note(s, space, addresses, mask, nbytes)
    memory.store(at, values, text)


def _load(s: State, instruction: Instruction, mask: Mask) -> None:
    kind, registers = instruction.type, elements(instruction.operands[0])
    if instruction.operation[1] == "param":
        name, _, offset = instruction.operands[1].strip("[]").partition("+")
        value = s.parameters[name] >> (8 * int(offset or 0))
        s.put(registers[0], np.full(s.n, value % (1 << 8 * width(kind)), f"u{width(kind)}"), mask)
        return
    size = width(kind)
    addresses = s.address(instruction.operands[1])
    result = np.zeros((s.n, size * len(registers)), np.uint8)
    for space, inside, here in spaces(s, instruction, addresses, mask):
        result[here] = read(s, space, inside, here, size * len(registers), instruction.text)
        if instruction.has("nc"):
            region = s.memories[space].region
            assert region is not None
            s.memories[space].constant.update(np.unique(region[inside[here]]).tolist())
    for number, register in enumerate(registers):
        part = np.ascontiguousarray(result[:, number * size : (number + 1) * size]).view(dtype_of(kind)).ravel()
        s.put(register, _extended(part, s, register), mask)


def _extended(values: NDArray[Any], s: State, register: str) -> NDArray[Any]:
    """Signed integers fill a wider register with their sign."""
    wide = s.kernel.widths.get(register, values.dtype.itemsize)
    return values.astype(f"{values.dtype.kind}{wide}") if wide > values.dtype.itemsize and values.dtype.kind in "iu" else values


def _store(s: State, instruction: Instruction, mask: Mask) -> None:
    kind, registers = instruction.type, elements(instruction.operands[1])
    values = [np.ascontiguousarray(s.value(register, kind)).view(np.uint8).reshape(s.n, -1) for register in registers]
    joined = np.concatenate(values, 1)
    addresses = s.address(instruction.operands[0])
    for space, inside, here in spaces(s, instruction, addresses, mask):
        write(s, space, inside, here, joined[here], instruction.text)


def _to_generic(s: State, instruction: Instruction, mask: Mask) -> None:
    """``cvta.shared d, a`` and ``cvta.to.shared d, a``."""
    value = s.value(instruction.operands[1], instruction.type)
    shared, local = s.windows
    space = next(word for word in instruction.operation if word in _SPACES)
    begin = np.asarray({"global": 0, "const": 0, "shared": shared, "local": local}[space], value.dtype)
    s.put(instruction.operands[0], value - begin if instruction.has("to") else value + begin, mask)


_ATOMICS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda _, y: y,
}


def _atomic(s: State, instruction: Instruction, mask: Mask) -> None:
    """One thread after another. Races with atomics are none; with other accesses they are."""
    kind, size = instruction.type, width(instruction.type)
    returns = instruction.operation[0] == "atom"
    operands = instruction.operands[1:] if returns else instruction.operands
    name = next(word for word in instruction.operation if word in (*_ATOMICS, "cas"))
    y = s.value(operands[1], kind)
    z = s.value(operands[2], kind) if name == "cas" else y
    before = np.zeros(s.n, dtype_of(kind))
    for space, inside, here in spaces(s, instruction, s.address(operands[0]), mask):
        memory = s.memories[space]
        at = memory.place(inside[here], parts_of(s, space, here), size, instruction.text)
        note(s, space, inside, here, size)
        cells = memory.content
        for lane, place in zip(np.flatnonzero(here), at, strict=True):
            cell = cells[place : place + size].view(dtype_of(kind))
            before[lane] = cell[0]
            if name == "cas":
                cell[0] = z[lane] if cell[0] == y[lane] else cell[0]
            else:
                cell[0] = _ATOMICS[name](cell[0], y[lane])
        if memory.region is not None:
            memory.stored.update(np.unique(memory.region[at]).tolist())
    if returns:
        s.put(instruction.operands[0], before, mask)


def _fence(s: State, instruction: Instruction, mask: Mask) -> None:
    """Stores are seen at once here."""
    del s, mask
    if instruction.operation[0] not in ("membar", "fence"):
        raise PtxError(instruction.text)


HANDLERS: Final = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "cvta": _to_generic,
    "atom": _atomic,
    "red": _atomic,
    "membar": _fence,
    "fence": _fence,
}
