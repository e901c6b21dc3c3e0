"""The element types, and numpy's rules for mixing them.

A dtype is its numpy name, as a string. ``bfloat16`` is the one that numpy lacks; it comes from ``ml_dtypes``.
"""

from functools import cache
from typing import Final

import ml_dtypes
import numpy as np

from ansorlite.errors import ExpressionError

#: Every dtype an expression may have -> the numpy type that stores it.
NUMPY: Final[dict[str, np.dtype]] = {
    "bool": np.dtype(np.bool_),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint8": np.dtype(np.uint8),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}

#: Floats that are only stored: an operation on them is done in float32 and rounded once.
STORAGE_FLOATS: Final = frozenset({"float16", "bfloat16"})

#: The dtype of axes and of index arithmetic.
INDEX: Final = "int64"


def check(dtype: object) -> str:
    """Return the canonical name of ``dtype`` (a name, or anything numpy takes for one).

    Raises:
        ExpressionError: not one of :data:`NUMPY`.
    """
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError:
        name = dtype
    if name not in NUMPY:
        raise ExpressionError(f"unknown dtype {name!r}; use one of {', '.join(NUMPY)}")
    return name


def is_float(dtype: str) -> bool:
    return dtype in ("float16", "bfloat16", "float32", "float64")


def is_integer(dtype: str) -> bool:
    """Whether ``dtype`` is a signed or unsigned integer (bool is not)."""
    return dtype.startswith(("int", "uint"))


def is_signed(dtype: str) -> bool:
    return dtype.startswith("int")


def size(dtype: str) -> int:
    """Bytes of one element."""
    return NUMPY[dtype].itemsize


@cache
def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest number of an integer ``dtype``; bool has 0 and 1."""
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def promote(a: str, b: str) -> str:
    """The dtype of an operation on both, by numpy's table.

    Raises:
        ExpressionError: numpy refuses the mix too (``float16`` with ``bfloat16``, say); cast one of them.
    """
    if a == b:
        return a
    try:
        return check(np.promote_types(NUMPY[a], NUMPY[b]))
    except (TypeError, ExpressionError):
        raise ExpressionError(f"dtypes {a} and {b} do not mix; te.cast one of them") from None
