"""The meaning of each operation on numpy arrays and scalars: the one place where values are computed.

float16 and bfloat16 are storage: an operation on them is done in float32 and rounded once, as numpy does for float16.
Integers wrap. Call under ``numpy.errstate(all="ignore")``: overflow, division by zero and NaN are values here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.ops import BINARY, UNARY, BinaryOp, ReduceOp, UnaryOp

_STORAGE: Final = ("float16", "bfloat16")


def apply(op: BinaryOp | UnaryOp, operands: tuple[Any, ...], operand_dtype: str, dtype: str) -> Any:
    """``op`` on arrays or scalars.

    Args:
        operand_dtype: the dtype of every operand.
        dtype: the dtype of the result.

    Raises:
        ExpressionError: an integer to a negative power, which numpy refuses.
    """
    info = BINARY[op] if isinstance(op, BinaryOp) else UNARY[op]
    if operand_dtype in _STORAGE:
        operands = tuple(convert(x, "float32") for x in operands)
    try:
        return convert(info.numpy(*operands), dtype)
    except ValueError as error:
        raise ExpressionError(f"{op.value} on {operand_dtype}: {error}; te.cast the operands to a float dtype first") from None


def convert(value: Any, dtype: str) -> Any:
    """``value`` as ``dtype``, by ``astype``."""
    target = dtypes.NUMPY[dtype]
    return value if getattr(value, "dtype", None) == target else np.asarray(value).astype(target)


def accumulator(op: ReduceOp, dtype: str) -> str:
    """The dtype in which a reduction is accumulated before it is rounded, once, to ``dtype``.

    Sums and products of floats: float64, so that the result is closer to the true one than any order of additions in
    ``dtype`` could be. The others are exact, or wrap, in ``dtype`` itself.
    """
    if dtypes.is_float(dtype) and op in (ReduceOp.SUM, ReduceOp.PROD):
        return "float64"
    return "float32" if dtype in _STORAGE else dtype


def identity(op: ReduceOp, dtype: str) -> Any:
    """The value a reduction starts from, as a numpy scalar of ``dtype``."""
    kind = dtypes.NUMPY[dtype].type
    if op in (ReduceOp.SUM, ReduceOp.PROD):
        return kind(op is ReduceOp.PROD)
    if dtypes.is_float(dtype):
        return kind(-np.inf if op is ReduceOp.MAX else np.inf)
    if dtype == "bool":
        return kind(op is ReduceOp.MIN)
    return kind(np.iinfo(dtype).min if op is ReduceOp.MAX else np.iinfo(dtype).max)
