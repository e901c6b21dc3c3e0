"""What a float expression can be: which floats surely fit an integer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from ansorlite.once import once_for_each
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Select, Unary
from ansorlite.te.index.ranges import binary, hull
from ansorlite.te.ops import BinaryOp, UnaryOp


class FloatRange(NamedTuple):
    """What a float expression can be: ``low <= value <= high``, or NaN."""

    low: float
    high: float
    nan: bool


ANYTHING: Final = FloatRange(-math.inf, math.inf, nan=True)


@once_for_each
def float_range(expr: Expr) -> FloatRange:
    """What a float expression can be, as far as limits (minimum, maximum) and literals in it say."""
    match expr:
        case Const(value):
            return ANYTHING if math.isnan(value) else FloatRange(float(value), float(value), nan=False)
        case Cast(a) if a.dtype == "bool":
            return FloatRange(0.0, 1.0, nan=False)
        case Cast(a) if dtypes.is_integer(a.dtype):
            low, high = (_rounded(limit, expr.dtype) for limit in dtypes.limits(a.dtype))
            return FloatRange(low, high, nan=False)
        case Unary(UnaryOp.ROUND | UnaryOp.FLOOR | UnaryOp.CEIL, a):
            x = float_range(a)
            return FloatRange(_whole(math.floor, x.low), _whole(math.ceil, x.high), x.nan)
        case Binary(BinaryOp.MIN | BinaryOp.MAX as op, a, b):
            x, y = float_range(a), float_range(b)
            return FloatRange(*binary(op, x[:2], y[:2], expr.dtype), x.nan or y.nan)
        case Binary(BinaryOp.ADD | BinaryOp.SUB as op, a, b):
            x, y = float_range(a), float_range(b)
            if not (x.nan or y.nan) and all(map(math.isfinite, (*x[:2], *y[:2]))):
                low, high = (_rounded(limit, expr.dtype) for limit in binary(op, x[:2], y[:2], expr.dtype))
                return FloatRange(low, high, nan=False)
        case Select(_, a, b):
            x, y = float_range(a), float_range(b)
            return FloatRange(*hull(x[:2], y[:2]), x.nan or y.nan)
    return ANYTHING


def _rounded(limit: float, dtype: str) -> float:
    """``limit`` in a float ``dtype``: rounding keeps order."""
    with np.errstate(over="ignore"):
        return float(np.asarray(limit).astype(dtypes.NUMPY[dtype]))


def _whole(rounded: Callable[[float], int], limit: float) -> float:
    return limit if math.isinf(limit) else float(rounded(limit))
