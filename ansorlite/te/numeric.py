"""The meaning of each operation on numpy arrays and scalars: the one place where values are computed.

One meaning for every machine, also where numpy leaves it to the machine or has none (``docs/te.md`` has the table). float16 and
bfloat16 are storage: an operation on them is done in float32 and rounded once, as numpy does for float16. Integers wrap. Call
under ``numpy.errstate(all="ignore")``: overflow, division by zero and NaN are values here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ansorlite.te import dtypes
from ansorlite.te.ops import BINARY, UNARY, BinaryOp, ReduceOp, UnaryOp


def apply(op: BinaryOp | UnaryOp, operands: tuple[Any, ...], operand_dtype: str, dtype: str) -> Any:
    """``op`` on arrays or scalars.

    Args:
        operand_dtype: the dtype of every operand.
        dtype: the dtype of the result.
    """
    info = BINARY[op] if isinstance(op, BinaryOp) else UNARY[op]
    if operand_dtype in dtypes.STORAGE_FLOATS:
        operands = tuple(convert(x, "float32") for x in operands)
    return convert(info.numpy(*operands), dtype)


def convert(value: Any, dtype: str) -> Any:
    """``value`` as ``dtype``: by ``astype``, but of a float that an integer ``dtype`` cannot hold, the nearest that it can.

    NaN becomes 0.
    """
    target = dtypes.NUMPY[dtype]
    array = np.asarray(value)
    if array.dtype == target:
        return value
    if dtypes.is_integer(dtype) and dtypes.is_float(array.dtype.name):
        return _truncated(array.astype(np.float32) if array.dtype.name in dtypes.STORAGE_FLOATS else array, target)
    return array.astype(target)


def _truncated(value: Any, target: np.dtype[Any]) -> Any:
    info = np.iinfo(target)
    # Every float has the powers of two; the greatest integer itself is not among the floats, if it is wide.
    low, beyond = float(info.min), float(info.max + 1)
    whole = np.trunc(value)
    fits = (whole >= low) & (whole < beyond)
    number = np.where(fits, whole, 0).astype(target)
    if not fits.all():
        number[whole >= beyond] = info.max
        number[whole < low] = info.min
    return number


def accumulator(op: ReduceOp, dtype: str) -> str:
    """The dtype in which a reduction is accumulated before it is rounded, once, to ``dtype``.

    Sums and products of floats: float64, so that the result is closer to the true one than any order of additions in
    ``dtype`` could be. The others are exact, or wrap, in ``dtype`` itself.
    """
    if dtypes.is_float(dtype) and op in (ReduceOp.SUM, ReduceOp.PROD):
        return "float64"
    return "float32" if dtype in dtypes.STORAGE_FLOATS else dtype


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
