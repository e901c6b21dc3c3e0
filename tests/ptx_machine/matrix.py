"""Matrix units: tiles shared out among the lanes of a warp, by the tables of the PTX manual."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine import accesses
from tests.ptx_machine.accesses import elements
from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.state import WARP, Mask, State
from tests.ptx_machine.text import Instruction

_LANE: Final = np.arange(WARP)
_ROW, _COLUMN = _LANE // 4, _LANE % 4


def _load_matrix(s: State, instruction: Instruction, mask: Mask) -> None:
    """``ldmatrix``: 8 × 8 of 16 bits; the first 8 lanes have the rows' addresses of the first, the next 8 of the second."""
    if not instruction.has("m8n8") or instruction.type != "b16":
        raise PtxError(f"unknown instruction: {instruction.text}")
    registers = elements(instruction.operands[0])
    _whole(s, instruction, mask)
    addresses = s.address(instruction.operands[1])
    for number, register in enumerate(registers):
        rows = mask & (s.lane // 8 == number)
        if (addresses[rows] % 16).any():
            raise PtxError(f"misaligned: a row of {instruction.text}")
        data = np.zeros((s.n, 16), np.uint8)
        data[rows] = accesses.read(s, "shared", addresses, rows, 16, instruction.text)
        tile = data.view(np.uint16)[s.in_warp[:, 8 * number : 8 * number + 8]]
        if instruction.has("trans"):
            tile = tile.swapaxes(1, 2)
        low, high = (tile[:, _ROW, 2 * _COLUMN + half].astype(np.uint32) for half in (0, 1))
        s.put(register, s.from_warps(low | high << 16), mask)


def _whole(s: State, instruction: Instruction, mask: Mask) -> None:
    here = s.in_warps(mask)
    if (here.any(1) != here.all(1)).any():
        raise PtxError(f"not all lanes of a warp take part: {instruction.text}")


#: Bytes of an element by type, and how one is read from a word.
_ELEMENTS: Final = {"f16": 2, "bf16": 2, "tf32": 4, "s8": 1, "u8": 1}


def _unpacked(words: NDArray[np.uint32], kind: str) -> NDArray[Any]:
    """(warps, 32) words to (warps, 32, elements of a word), in the dtype that is added up in."""
    if kind == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32)[..., None]
    if kind in ("f16", "bf16"):
        halves = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], -1)
        if kind == "bf16":
            return (halves << np.uint32(16)).view(np.float32)
        return halves.astype(np.uint16).view(np.float16).astype(np.float32)
    shifts = np.arange(0, 32, 8, dtype=np.uint32)
    parts = ((words[..., None] >> shifts) & np.uint32(0xFF)).astype(np.uint8)
    return (parts.view(np.int8) if kind == "s8" else parts).astype(np.int32)


def _product(s: State, instruction: Instruction, mask: Mask) -> None:
    """``mma.sync.aligned.m16n8kK.row.col.d.a.b.c``."""
    _whole(s, instruction, mask)
    words = instruction.operation
    shape = next((word for word in words if word.startswith("m16n8k")), "")
    d_kind, a_kind, b_kind, c_kind = words[-4:]
    if not shape or a_kind not in _ELEMENTS or b_kind not in _ELEMENTS or d_kind != c_kind or d_kind not in ("f32", "s32"):
        raise PtxError(f"unknown instruction: {instruction.text}")
    k = int(shape.removeprefix("m16n8k"))
    per_word = 4 // _ELEMENTS[a_kind]
    d, a, b, c = (elements(operand) for operand in instruction.operands)
    if len(a) != k // (2 * per_word) or len(b) != k // (4 * per_word):
        raise PtxError(f"the fragments do not suit the shape: {instruction.text}")
    total = np.float32 if d_kind == "f32" else np.int32
    warps = len(s.in_warp)
    A, B, C = np.zeros((warps, 16, k), total), np.zeros((warps, k, 8), total), np.zeros((warps, 16, 8), total)
    for number, register in enumerate(a):
        parts = _unpacked(s.whole_warps(s.value(register, "u32")), a_kind)
        for e in range(per_word):
            A[:, _ROW + 8 * (number % 2), _COLUMN * per_word + e + 4 * per_word * (number // 2)] = parts[..., e]
    for number, register in enumerate(b):
        parts = _unpacked(s.whole_warps(s.value(register, "u32")), b_kind)
        for e in range(per_word):
            B[:, _COLUMN * per_word + e + 4 * per_word * number, _ROW] = parts[..., e]
    for number, register in enumerate(c):
        C[:, _ROW + 8 * (number // 2), _COLUMN * 2 + number % 2] = s.whole_warps(s.value(register, d_kind))
    D = (C.astype(np.float64) + A.astype(np.float64) @ B).astype(total) if d_kind == "f32" else C + A @ B
    for number, register in enumerate(d):
        s.put(register, s.from_warps(D[:, _ROW + 8 * (number // 2), _COLUMN * 2 + number % 2]), mask)


HANDLERS: Final = {"ldmatrix": _load_matrix, "mma": _product}
