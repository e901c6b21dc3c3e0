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
        pairs = [(*parts[i : i + 2], "poison")[:2] for i in range(0, len(parts), 2)]
        parts = [b.shuffle(types.vector(result, width), x, y, range(2 * width)) for x, y in pairs]
        width *= 2
    return _picked(b, result, width, parts[0], list(range(lanes)))


def _picked(b: Builder, element: str, lanes: int, vector: str, picks: list[int]) -> str:
    return vector if picks == list(range(lanes)) else b.shuffle(types.vector(element, lanes), vector, "poison", picks)
