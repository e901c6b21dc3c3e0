"""Random values for arrays, the same for the same seed. Needs nothing but Python and numpy: it runs on boards, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Fill:
    """What an array is filled with.

    Attributes:
        shape, dtype: of the array.
        low, high: integers are of ``[low, high)``.
    """

    shape: tuple[int, ...]
    dtype: str
    low: int
    high: int


def fill(array: np.ndarray[Any, Any], what: Fill, rng: np.random.Generator, positive: bool) -> None:
    """Fill ``array``. Floats are uniform in [-1, 1), or in [0.5, 1.5) if ``positive``.

    Args:
        array: of the shape and dtype; of bfloat16 the bits, as uint16.
    """
    if what.dtype in ("float32", "float64"):
        rng.random(out=array, dtype=array.dtype.type)
        _stretch(array, positive)
    elif what.dtype in ("float16", "bfloat16"):
        wide = rng.random(what.shape, dtype=np.float32)
        _stretch(wide, positive)
        array[...] = to_bfloat16(wide) if what.dtype == "bfloat16" else wide
    elif what.dtype == "bool":
        array[...] = rng.integers(0, 2, what.shape, dtype=np.bool_)
    else:
        array[...] = rng.integers(what.low, what.high, what.shape)


def _stretch(array: np.ndarray[Any, Any], positive: bool) -> None:
    """From [0, 1) to the range wanted, in place."""
    if positive:
        array += 0.5
    else:
        array *= 2
        array -= 1


def to_bfloat16(wide: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of finite float32 numbers rounded to bfloat16, ties to even."""
    bits = np.ascontiguousarray(wide, np.float32).view(np.uint32).reshape(np.shape(wide))
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def from_bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The float32 numbers of bfloat16's bits."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
