"""Instructions that LLVM has for vectors of fixed lengths alone, applied to vectors of any length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ansorlite.codegen import types
from ansorlite.codegen.builder import Builder


def width_of(b: Builder, nbytes: int, lanes: int) -> int:
    """Lanes of the instruction to use for ``lanes`` elements of so many bytes: of 16 bytes at least, of 64 at most."""
    widest = min(b.module.target.vector_bytes, 64) // nbytes
    return max(16 // nbytes, min(widest, 1 << math.ceil(math.log2(lanes))))


def in_pieces(
    b: Builder, lanes: int, width: int, operands: Sequence[tuple[str, str]], result: str, instruction: Callable[..., str]
) -> str:
    """``instruction``, of vectors of ``width`` lanes, of each piece of vectors of ``lanes``, two at least.

    Args:
        operands: the type of an element of each, and the vector.
        result: the type of an element of what the instruction gives.
        instruction: is given a vector of each operand.
    """
    parts = []
    for start in range(0, lanes, width):
        picks = [min(start + lane, lanes - 1) for lane in range(width)]
        parts.append(instruction(*(_picked(b, kind, lanes, vector, picks) for kind, vector in operands)))
    while len(parts) > 1:
        # Pairs of equal length, but perhaps the last.
        parts = [_joined(b, result, parts[i : i + 2], width) for i in range(0, len(parts), 2)]
        width *= 2
    return _picked(b, result, width, parts[0], list(range(lanes)))


def _picked(b: Builder, element: str, lanes: int, vector: str, picks: Sequence[int]) -> str:
    if list(picks) == list(range(lanes)):
        return vector
    kind, indices = types.vector(element, lanes), ", ".join(f"i32 {pick}" for pick in picks)
    return b.op(f"shufflevector {kind} {vector}, {kind} poison, <{len(picks)} x i32> <{indices}>")


def _joined(b: Builder, element: str, pair: Sequence[str], width: int) -> str:
    first, second = (*pair, "poison")[:2]
    kind, indices = types.vector(element, width), ", ".join(f"i32 {lane}" for lane in range(2 * width))
    return b.op(f"shufflevector {kind} {first}, {kind} {second}, <{2 * width} x i32> <{indices}>")
