"""``x * 2**n`` in one instruction of AVX-512, ``vscalefps``: rounded once, whether the result is 0, denormal or infinite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ansorlite.codegen import types
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.pieces import in_pieces, width_of
from ansorlite.target import Target

#: By the type of an element: the intrinsic's ending, and bytes.
_ENDINGS: Final[Mapping[str, tuple[str, int]]] = {"float": ("ps", 4), "double": ("pd", 8)}


def scales(target: Target, lanes: int) -> bool:
    """Whether there is such an instruction for vectors of so many lanes."""
    return lanes > 1 and "+avx512vl" in target.features.split(",")


def scalef(b: Builder, element: str, lanes: int, x: str, n: str) -> str:
    """``x * 2**n``; ``n`` is a whole number of the type of ``x``."""
    ending, nbytes = _ENDINGS[element]
    width = width_of(b, nbytes, lanes)
    kind, bits = types.vector(element, width), 8 * nbytes * width
    # All lanes; 4 is the current direction of rounding, which only the widest form is told.
    more = [(f"i{max(width, 8)}", "-1"), *([("i32", "4")] if bits == 512 else [])]

    def piece(x: str, n: str) -> str:
        name = f"llvm.x86.avx512.mask.scalef.{ending}.{bits}"
        return b.call(kind, name, (kind, x), (kind, n), (kind, "poison"), *more)

    return in_pieces(b, lanes, width, ((element, x), (element, n)), element, piece)
