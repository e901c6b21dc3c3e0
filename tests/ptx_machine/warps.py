"""What threads do together: barriers of a block, shuffles and votes of a warp."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.state import WARP, Ints, Mask, State
from tests.ptx_machine.text import Instruction

_EVERYBODY: Final = 0xFFFFFFFF
#: Operations of a warp; those of matrices name all of its lanes.
_OF_WARPS: Final = ("shfl", "vote", "redux", "ldmatrix", "stmatrix", "mma")


def block_barrier(s: State, instruction: Instruction, taken: Mask, mask: Mask) -> None:
    """``bar.sync 0``: for all threads of a block. Lanes that took another way to it are waited for: a warp comes to it as one.

    Raises:
        PtxError: it is for some threads only.
    """
    words = [word for word in instruction.operation[1:] if word not in ("cta", "aligned")]
    if words not in (["sync"], ["sync", "all"]) or instruction.operands != ("0",):
        raise PtxError(f"unknown instruction: {instruction.text}")
    if (taken != mask).any():
        raise PtxError(f"a barrier that some threads skip: {instruction.text}")
    s.waiting |= mask


def waits(instruction: Instruction) -> bool:
    """Whether it is an operation of a warp."""
    return instruction.operation[0] in _OF_WARPS or instruction.operation[:2] == ("bar", "warp")


def _members(s: State, instruction: Instruction, mask: Mask) -> Ints:
    """Which lanes of the warp take part, for each thread."""
    if instruction.operation[0] in ("ldmatrix", "stmatrix", "mma"):
        return np.full(s.n, _EVERYBODY)
    del mask
    return s.value(instruction.operands[-1], "u32").astype(np.int64)


def gather(s: State, instruction: Instruction, taken: Mask, pc: int) -> bool:
    """Whether all lanes that the threads of ``taken`` name are here; those that are not complete are held.

    Raises:
        PtxError: a thread does not name itself, or names one that has ended.
    """
    members = _members(s, instruction, taken)
    if ((members >> s.lane) & 1)[taken].min(initial=1) == 0:
        raise PtxError(f"a thread that is not among those that take part: {instruction.text}")
    at_hand = taken | (s.held & (s.pc == pc))
    here = s.in_warps(at_hand)
    bits = (here.astype(np.int64) << np.arange(WARP)).sum(1)
    exist = ((s.in_warp >= 0).astype(np.int64) << np.arange(WARP)).sum(1)
    wanted = members & exist[s.warp]
    ended = (s.in_warps(s.done).astype(np.int64) << np.arange(WARP)).sum(1)
    if (wanted & ended[s.warp])[taken].any():
        raise PtxError(f"not all threads that an operation of a warp names take part in it: {instruction.text}")
    complete = (wanted & ~bits[s.warp]) == 0
    if complete[at_hand].all():
        s.held &= ~at_hand
        s.freed = at_hand
        return True
    s.held |= taken
    return False


_REACHES: Final[Mapping[str, Callable[[Ints, Ints], Ints]]] = {"bfly": np.bitwise_xor, "up": np.subtract, "down": np.add}


def _shuffle(s: State, instruction: Instruction, mask: Mask) -> None:
    """``shfl.sync.mode.b32 d{|p}, a, b, c, members``; c has the end of a segment in its low bits and the segments' mask above."""
    to, a, b, c, _ = instruction.operands
    mode = instruction.operation[2]
    by, clamp = (s.value(operand, "u32").astype(np.int64) for operand in (b, c))
    end, segment = clamp & 31, clamp >> 8 & 31
    low = s.lane & segment
    high = low | (end & ~segment)
    source = low | (by & 31 & ~segment) if mode == "idx" else _REACHES[mode](s.lane, by & 31)
    inside = source >= high if mode == "up" else source <= high
    source = np.where(inside, source, s.lane)
    at = s.in_warp[s.warp, source]
    if ((at < 0) | ~mask[at])[mask].any():
        raise PtxError(f"a shuffle from a lane that takes no part in it: {instruction.text}")
    register, _, flag = to.partition("|")
    s.put(register, s.value(a, "u32")[at], mask)
    if flag:
        s.put(flag, inside, mask)


def _vote(s: State, instruction: Instruction, mask: Mask) -> None:
    to, condition, _ = instruction.operands
    votes, against = (s.in_warps(flags & mask) for flags in (s.predicate(condition), ~s.predicate(condition)))
    match instruction.operation[2]:
        case "ballot":
            s.put(to, ((votes.astype(np.int64) << np.arange(WARP)).sum(1)[s.warp]).astype(np.uint32), mask)
        case "any":
            s.put(to, (votes.sum(1) > 0)[s.warp], mask)
        case "all":
            s.put(to, (against.sum(1) == 0)[s.warp], mask)
        case _:
            raise PtxError(f"unknown instruction: {instruction.text}")


_REDUCTIONS: Final = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _reduce(s: State, instruction: Instruction, mask: Mask) -> None:
    to, a, _ = instruction.operands
    operation = _REDUCTIONS[instruction.operation[2]]
    values = s.value(a, instruction.type)
    result = np.zeros_like(values)
    for warp in np.unique(s.warp[mask]):
        lanes = np.flatnonzero(mask & (s.warp == warp))
        result[lanes] = operation.reduce(values[lanes])
    s.put(to, result, mask)


def _warp_barrier(s: State, instruction: Instruction, mask: Mask) -> None:
    """``bar.warp.sync``: the lanes have met already."""
    del s, instruction, mask


HANDLERS: Final = {"shfl": _shuffle, "vote": _vote, "redux": _reduce, "bar": _warp_barrier, "barrier": _warp_barrier}
