"""Small integers side by side in 32-bit words, and the dot product of two such words.

Machines multiply bytes by the word: one instruction multiplies the four bytes (or two halves) of each 32-bit lane with
those of another, and adds the products up in 32 bits. The first piece is the lowest in the word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

#: The dtype of a word, and of the sum of the products in it.
WORD: Final = "int32"


@dataclass(frozen=True)
class Pieces:
    """What a word holds: as many integers of ``dtype`` as fit.

    Attributes:
        most: what none of them exceeds in magnitude, where that is less than the dtype allows.
    """

    dtype: str
    most: int | None = None

    @property
    def bits(self) -> int:
        """Width of one piece."""
        return 8 * np.dtype(self.dtype).itemsize

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return 32 // self.bits

    @property
    def signed(self) -> bool:
        return np.dtype(self.dtype).kind == "i"

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest piece."""
        if self.most is not None:
            return -self.most, self.most
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def word(self, pieces: Sequence[int]) -> int:
        """The word of these ``pieces``, the lowest first, as an int32."""
        bits = sum((piece & ((1 << self.bits) - 1)) << number * self.bits for number, piece in enumerate(pieces))
        return bits - (1 << 32) if bits >> 31 else bits

    def piece(self, words: Any, number: int) -> Any:
        """One piece of every word; ``words`` are int64, or Python ints."""
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
