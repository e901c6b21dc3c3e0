"""Random arrays of every dtype, with the values that programs get wrong first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

FLOATS: Final = ("float32", "float64", "float16", "bfloat16")
SIGNED: Final = ("int8", "int16", "int32", "int64")
UNSIGNED: Final = ("uint8", "uint16", "uint32", "uint64")
INTEGERS: Final = (*SIGNED, *UNSIGNED)
NUMBERS: Final = (*FLOATS, *INTEGERS)
ALL: Final = (*NUMBERS, "bool")
BYTES: Final = ("uint8", "int8")

#: How much oftener than others a dtype is drawn.
_WEIGHTS: Final = {"float32": 8.0, "int64": 2.0, "float16": 2.0, "float64": 2.0}

#: What one in so many arrays of floats has among its elements.
_EDGES: Final = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-40, 1e15, 1.0, -1.0, 0.5, 2.5)
_WITH_EDGES: Final = 0.07
#: ... and one in so many arrays of integers.
_WITH_EXTREMES: Final = 0.07


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def draw_dtype(rng: np.random.Generator, dtypes: Sequence[str]) -> str:
    weights = np.array([_WEIGHTS.get(dtype, 1.0) for dtype in dtypes])
    return dtypes[rng.choice(len(dtypes), p=weights / weights.sum())]


def draw(
    rng: np.random.Generator, dtype: str, shape: Sequence[int], low: float | None = None, high: float | None = None
) -> Array:
    """An array; within ``low`` and ``high`` (of integers: both included), if given."""
    kind, size = numpy_dtype(dtype), tuple(shape)
    if dtype == "bool":
        return np.asarray(rng.random(size) < 0.5)
    if is_float(dtype):
        if low is not None and high is not None:
            return np.asarray(rng.uniform(low, high, size)).astype(kind)
        array = np.asarray(rng.standard_normal(size) * rng.choice([0.1, 1.0, 1.0, 4.0]))
        if rng.random() < _WITH_EDGES:
            array = np.where(rng.random(size) < 0.25, rng.choice(_EDGES, size), array)
        with np.errstate(over="ignore"):
            return array.astype(kind)
    info = np.iinfo(kind)
    if low is not None and high is not None:
        return np.asarray(rng.integers(max(int(low), info.min), min(int(high), info.max), size, kind, endpoint=True))
    if rng.random() < _WITH_EXTREMES:
        return np.asarray(rng.integers(info.min, info.max, size, kind, endpoint=True))
    return np.asarray(rng.integers(max(-6, info.min), 9, size, kind, endpoint=True))
