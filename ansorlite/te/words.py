"""Small integers side by side in 32-bit words, and the dot product of two such words.

Machines multiply bytes by the word: one instruction multiplies the four bytes (or two halves) of each 32-bit lane with
those of another, and adds the products up in 32 bits. The first piece is the lowest in the word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

#: The dtype of a word, and of the sum of the products in it.
WORD: Final = "int32"


@dataclass(frozen=True)
class Pieces:
    """What a word holds: as many integers of ``dtype`` as fit."""

    dtype: str

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
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def of(self, words: Any) -> np.ndarray:
        """The pieces of every word, int32, along a new last dimension."""
        column = np.ascontiguousarray(words, dtype="<i4").reshape(*np.shape(words), 1)
        return column.view(np.dtype(self.dtype).newbyteorder("<")).astype(WORD)


def dot(a: Pieces, b: Pieces, x: Any, y: Any) -> Any:
    """The sums of the products of the pieces of words ``x``, that are ``a``, and ``y``, that are ``b``: int32, wrapped."""
    return (a.of(x) * b.of(y)).sum(axis=-1, dtype=WORD)
