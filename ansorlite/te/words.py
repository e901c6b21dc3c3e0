"""Small numbers side by side in 32-bit words, and the dot product of two such words.

Machines multiply bytes by the word: one instruction multiplies the four bytes (or two halves) of each 32-bit lane with
those of another, and adds the products up in 32 bits. The first piece is the lowest in the word. Two bfloat16 are a word,
too: their products are added up in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ansorlite.te import dtypes

#: The dtype of a word.
WORD: Final = "int32"


@dataclass(frozen=True)
class Pieces:
    """What a word holds: as many numbers of ``dtype`` as fit.

    Attributes:
        most: what none of them exceeds in magnitude, where that is less than the dtype allows.
    """

    dtype: str
    most: int | None = None

    @property
    def bits(self) -> int:
        """Width of one piece."""
        return 8 * dtypes.size(self.dtype)

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return 32 // self.bits

    @property
    def signed(self) -> bool:
        return dtypes.is_signed(self.dtype)

    @property
    def floats(self) -> bool:
        return dtypes.is_float(self.dtype)

    @property
    def sums(self) -> str:
        """The dtype in which products of such pieces are added up."""
        return "float32" if self.floats else "int32"

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest piece, of integers."""
        return dtypes.limits(self.dtype) if self.most is None else (-self.most, self.most)

    def word(self, pieces: Sequence[float]) -> int:
        """The word of these ``pieces``, the lowest first, as an int32."""
        patterns = np.array(pieces).astype(dtypes.NUMPY[self.dtype]).view(f"uint{self.bits}")
        bits = sum(int(pattern) << number * self.bits for number, pattern in enumerate(patterns))
        return bits - (1 << 32) if bits >> 31 else bits

    def piece(self, words: Any, number: int) -> Any:
        """One piece of every word, of integers; ``words`` are int64, or Python ints."""
        unsigned = (words >> number * self.bits) & ((1 << self.bits) - 1)
        sign = 1 << (self.bits - 1) if self.signed else 0
        return (unsigned ^ sign) - sign


def dot(a: Pieces, b: Pieces, x: Any, y: Any) -> Any:
    """The sums of the products of the pieces of words ``x``, that are ``a``, and ``y``, that are ``b``: int32, wrapped."""
    scalars = np.ndim(x) == 0 and np.ndim(y) == 0
    wide_x, wide_y = (int(x), int(y)) if scalars else (np.asarray(word, np.int64) for word in (x, y))
    total = sum(a.piece(wide_x, number) * b.piece(wide_y, number) for number in range(a.count))
    wrapped = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    return np.int32(wrapped) if scalars else np.asarray(wrapped).astype(WORD)


def dot_of_floats(x: Any, y: Any) -> Any:
    """The sums of the products of the two bfloat16 of words ``x`` and ``y``, in float32.

    A subnormal bfloat16 counts as 0. The two products are exact, and their sum is rounded once. What instructions do besides,
    when they add such a sum to others, is in ``codegen/dots.py``.
    """
    low, high = (_normal(x, 16) * _normal(y, 16), _normal(x, 0) * _normal(y, 0))
    return np.float32(low + high) if np.ndim(x) == np.ndim(y) == 0 else (low + high).astype(np.float32)


def _normal(words: Any, shift: int) -> Any:
    """The bfloat16 whose bits are the highest of ``words << shift``, as float64; 0 for a subnormal one."""
    bits = (np.asarray(words).astype(np.int64) << shift) & 0xFFFF_0000
    values = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    return np.where(bits & 0x7F80_0000, values, 0.0)
