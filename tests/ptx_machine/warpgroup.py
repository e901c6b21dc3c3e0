"""``wgmma``: four warps multiply what lies in shared memory; they learn of the sums when they have waited, and not before.

Warps come to it one by one: where some have copied and others had nothing to copy, those that are there wait for the others. PTX
promises that (``.sync``), and asks only that all of them come to the same instruction (``.aligned``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine import accesses, tensor_maps
from tests.ptx_machine.accesses import elements
from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.state import WARP, Ints, Mask, State
from tests.ptx_machine.text import Instruction

#: Threads of a warpgroup.
_GROUP: Final = 4 * WARP
#: Bytes of an element, by type.
_BYTES: Final = {"f16": 2, "bf16": 2, "s8": 1}


@dataclass
class _Product:
    """One that was begun: registers, and what they will be."""

    mask: Mask
    shape: tuple[str, ...]
    registers: list[str]
    values: list[NDArray[Any]]


@dataclass
class _Begun:
    """Products since the last commit, and the groups before."""

    open: list[_Product] = field(default_factory=list)
    groups: list[list[_Product]] = field(default_factory=list)


def _begun(s: State) -> _Begun:
    result: _Begun = s.copies.setdefault("wgmma", _Begun())
    return result


def waits(instruction: Instruction) -> bool:
    """Whether it is an operation of a warpgroup."""
    return instruction.operation[0] == "wgmma"


def gather(s: State, instruction: Instruction, taken: Mask, mask: Mask, pc: int) -> bool:
    """Whether all threads of the warpgroups of ``taken`` are here; those that are not complete are held.

    Raises:
        PtxError: some of the threads that came skip it, or some have ended.
    """
    here = taken | (s.held & (s.pc == pc))
    groups = here.reshape(-1, _GROUP) if s.threads % _GROUP == 0 else None
    if groups is None or (taken != mask).any() or s.done.reshape(-1, _GROUP)[groups.any(1)].any():
        raise PtxError(f"not all threads of a warpgroup take part: {instruction.text}")
    if (groups.any(1) != groups.all(1)).any():
        s.held |= taken
        return False
    s.held &= ~here
    s.freed = here
    return True


def _warpgroup(s: State, instruction: Instruction, mask: Mask) -> None:
    match instruction.operation[1:]:
        case ("fence", *_):
            s.changed.clear()
        case ("commit_group", *_):
            _begun(s).groups.append(_begun(s).open)
            _begun(s).open = []
        case ("wait_group", *_):
            _wait(s, int(instruction.operands[0]))
        case ("mma_async", *_):
            _multiply(s, instruction, mask)
        case _:
            raise PtxError(f"unknown instruction: {instruction.text}")


def _wait(s: State, pending: int) -> None:
    begun = _begun(s)
    landed, begun.groups = begun.groups[: len(begun.groups) - pending], begun.groups[len(begun.groups) - pending :]
    s.flying -= {register for group in landed for product in group for register in product.registers}
    for group in landed:
        for product in group:
            for register, values in zip(product.registers, product.values, strict=True):
                s.put(register, values, product.mask)
    later = [*(product for group in begun.groups for product in group), *begun.open]
    s.flying |= {register for product in later for register in product.registers}


def _multiply(s: State, instruction: Instruction, mask: Mask) -> None:
    """``wgmma.mma_async.sync.aligned.m64nNkK.d.a.b {sums}, a, b, 1, ...`` of two matrices whose steps lie side by side."""
    begun, words = _begun(s), instruction.operation
    columns, steps = (int(number) for number in words[4].removeprefix("m64n").split("k"))
    d_kind, a_kind, b_kind = words[5:8]
    sums, first, second, *flags = instruction.operands
    registers = elements(sums)
    wanted = ["1", "1", "1", "0", "0"] if d_kind == "f32" else ["1"]
    if a_kind != b_kind or a_kind not in _BYTES or flags != wanted or len(registers) != columns // 2:
        raise PtxError(f"unknown instruction: {instruction.text}")
    if not s.changed.isdisjoint(registers):
        raise PtxError(f"registers may not be ready: no wgmma.fence before {instruction.text}")
    # Products of one shape add to the same registers one after the other; others have to wait.
    same = [each for group in (*begun.groups, begun.open) for each in group if not {*each.registers}.isdisjoint(registers)]
    if any((each.registers, each.shape) != (registers, words[4:]) or (each.mask != mask).any() for each in same):
        raise PtxError(f"registers of a product that was not waited for: {instruction.text}")
    given = dict(zip(registers, same[-1].values, strict=True)) if same else {r: s.value(r, d_kind) for r in registers}
    a = _matrix(s, instruction, first, mask, 64, steps, a_kind)
    b = _matrix(s, instruction, second, mask, columns, steps, b_kind)
    total = np.float32 if d_kind == "f32" else np.int32
    before = np.zeros((len(a), 64, columns), total)
    thread = np.arange(_GROUP)
    row, column = thread // WARP * 16 + thread % WARP // 4, thread % 4 * 2
    places = [(row + 8 * (n // 2 % 2), column + 8 * (n // 4) + n % 2) for n in range(len(registers))]
    groups = mask.reshape(-1, _GROUP)[:, 0]
    for register, (down, across) in zip(registers, places, strict=True):
        before[:, down, across] = given[register].reshape(-1, _GROUP)[groups]
    if total is np.float32:
        after = (before.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64).swapaxes(1, 2)).astype(total)
    else:
        after = before + a.astype(np.int32) @ b.astype(np.int32).swapaxes(1, 2)
    values = []
    for down, across in places:
        result = np.zeros((len(groups), _GROUP), total)
        result[groups] = after[:, down, across]
        values.append(result.ravel())
    s.flying |= {*registers}
    begun.open.append(_Product(mask, words[4:], registers, values))


def _matrix(s: State, instruction: Instruction, operand: str, mask: Mask, rows: int, steps: int, kind: str) -> NDArray[Any]:
    """(warpgroups of mask, rows, steps) of what a descriptor speaks of: core matrices of 8 rows of 16 bytes, not swizzled."""
    told = s.value(operand, "u64").reshape(-1, _GROUP)[mask.reshape(-1, _GROUP)[:, 0]]
    if (told != told[:, :1]).any():
        raise PtxError(f"threads of a warpgroup have different descriptors: {instruction.text}")
    word = told[:, 0].astype(np.uint64)

    def bits(begin: int, count: int) -> Ints:
        return ((word >> np.uint64(begin)) & np.uint64((1 << count) - 1)).astype(np.int64)

    if bits(62, 2).any() or bits(49, 3).any():
        raise PtxError(f"a swizzled matrix is not known here: {instruction.text}")
    start, along_steps, along_rows = (bits(begin, 14) * 16 for begin in (0, 16, 32))
    item = _BYTES[kind]
    row, step = np.arange(rows)[:, None], np.arange(steps * item // 16)[None, :]
    offsets = row % 8 * 16 + (row // 8) * along_rows[:, None, None] + step * along_steps[:, None, None]
    addresses = (start[:, None, None] + offsets).reshape(len(word), -1)
    memory = s.memories["shared"]
    owners = np.flatnonzero(mask.reshape(-1, _GROUP)[:, 0]) * _GROUP
    pieces = addresses.shape[1]
    at = memory.place(addresses.ravel(), np.repeat(s.block[owners], pieces), 16, instruction.text)
    who, when = (np.repeat(each, pieces) for each in (s.identities_of(owners), s.now[s.block[owners]]))
    memory.note_load(at, 16, who, when, instruction.text)
    if memory.unfenced is not None and memory.unfenced[at[:, None] + np.arange(16)].any():
        raise PtxError(f"no fence.proxy.async since threads stored what is read: {instruction.text}")
    data = memory.load(at, 16).reshape(len(word), rows, -1)
    if kind == "s8":
        return data.view(np.int8)
    halves = data.view(np.uint16)
    if kind == "bf16":
        return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return halves.view(np.float16).astype(np.float32)


def _fence(s: State, instruction: Instruction, mask: Mask) -> None:
    """``fence.proxy.async``: what these threads stored is seen by what reads shared memory besides threads."""
    if "proxy" not in instruction.operation:
        accesses.HANDLERS["fence"](s, instruction, mask)
        return
    if "tensormap::generic" in instruction.operation:
        tensor_maps.acquire(s, instruction, mask)
        return
    memory = s.memories["shared"]
    if memory.unfenced is None:
        return
    mine = np.ones(len(memory.unfenced), np.bool_)
    if memory.history is not None:
        mine = np.isin(memory.history.writer, s.identities(mask))
    memory.unfenced &= ~mine


HANDLERS: Final = {"wgmma": _warpgroup, "fence": _fence}
