"""Intervals of expressions: which indices are provably non-negative, small, or within a buffer; which floats fit an integer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.ops import BinaryOp, UnaryOp


class Interval(NamedTuple):
    """``low <= value <= high``; ``None`` is unbounded."""

    low: int | None
    high: int | None


UNKNOWN = Interval(None, None)


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _negated(x: Interval) -> Interval:
    return Interval(None if x.high is None else -x.high, None if x.low is None else -x.low)


def _product(x: Interval, y: Interval) -> Interval:
    corners = [a * b for a in x for b in y if a is not None and b is not None]
    return Interval(min(corners), max(corners)) if len(corners) == 4 else UNKNOWN


def _unwrapped(x: Interval) -> Interval:
    """``x``, of a result of arithmetic, unless that may wrap around."""
    return x if x.low is not None and x.high is not None and x.low >= -(1 << 63) and x.high < 1 << 63 else UNKNOWN


def _quotient(x: Interval, y: Interval) -> Interval:
    if y.low is None or y.low != y.high or y.low <= 0:
        return UNKNOWN
    return Interval(None if x.low is None else x.low // y.low, None if x.high is None else x.high // y.low)


def _remainder(x: Interval, y: Interval) -> Interval:
    if y.low is None or y.low <= 0 or y.high is None:
        return UNKNOWN
    if x.low is not None and x.high is not None and x.low >= 0 and x.high < y.low:
        return x
    return Interval(0, y.high - 1)


def _minimum(x: Interval, y: Interval) -> Interval:
    highs = [h for h in (x.high, y.high) if h is not None]
    low = None if x.low is None or y.low is None else min(x.low, y.low)
    return Interval(low, min(highs) if highs else None)


def _maximum(x: Interval, y: Interval) -> Interval:
    return _negated(_minimum(_negated(x), _negated(y)))


def interval(expr: Expr, variables: Mapping[Var, Interval]) -> Interval:
    """The values that an int64 expression can take when its variables lie within ``variables``."""
    if isinstance(expr, Const) and not isinstance(expr.value, float):
        return Interval(int(expr.value), int(expr.value))
    if expr.dtype != dtypes.INDEX:
        return UNKNOWN
    if isinstance(expr, Var):
        return variables.get(expr, UNKNOWN)
    if isinstance(expr, Select):
        x, y = interval(expr.then, variables), interval(expr.otherwise, variables)
        return Interval(_minimum(x, y).low, _maximum(x, y).high)
    if not isinstance(expr, Binary):
        return UNKNOWN
    x, y = interval(expr.a, variables), interval(expr.b, variables)
    match expr.op:
        case BinaryOp.ADD:
            return _unwrapped(Interval(_add(x.low, y.low), _add(x.high, y.high)))
        case BinaryOp.SUB:
            y = _negated(y)
            return _unwrapped(Interval(_add(x.low, y.low), _add(x.high, y.high)))
        case BinaryOp.MUL:
            return _unwrapped(_product(x, y))
        case BinaryOp.FLOORDIV:
            return _quotient(x, y)
        case BinaryOp.MOD:
            return _remainder(x, y)
        case BinaryOp.MIN:
            return _minimum(x, y)
        case BinaryOp.MAX:
            return _maximum(x, y)
        case _:
            return UNKNOWN


class Numbers(NamedTuple):
    """What a float expression can be: ``low <= value <= high``, or NaN."""

    low: float
    high: float
    nan: bool


ANYTHING: Final = Numbers(-math.inf, math.inf, nan=True)


@lru_cache(maxsize=1 << 12)
def numbers(expr: Expr) -> Numbers:
    """What a float expression can be, as far as limits (minimum, maximum) and literals in it say."""
    match expr:
        case Const(value):
            return ANYTHING if math.isnan(value) else Numbers(float(value), float(value), nan=False)
        case Cast(a) if a.dtype == "bool":
            return Numbers(0.0, 1.0, nan=False)
        case Cast(a) if dtypes.is_integer(a.dtype):
            # Rounding keeps order.
            with np.errstate(over="ignore"):
                low, high = (float(np.asarray(limit).astype(dtypes.NUMPY[expr.dtype])) for limit in _limits(a.dtype))
            return Numbers(low, high, nan=False)
        case Unary(UnaryOp.ROUND | UnaryOp.FLOOR | UnaryOp.CEIL, a):
            x = numbers(a)
            return Numbers(_whole(math.floor, x.low), _whole(math.ceil, x.high), x.nan)
        case Binary(BinaryOp.MIN, a, b):
            x, y = numbers(a), numbers(b)
            return Numbers(min(x.low, y.low), min(x.high, y.high), x.nan or y.nan)
        case Binary(BinaryOp.MAX, a, b):
            x, y = numbers(a), numbers(b)
            return Numbers(max(x.low, y.low), max(x.high, y.high), x.nan or y.nan)
        case Select(_, a, b):
            x, y = numbers(a), numbers(b)
            return Numbers(min(x.low, y.low), max(x.high, y.high), x.nan or y.nan)
    return ANYTHING


def _whole(rounded: Callable[[float], int], limit: float) -> float:
    return limit if math.isinf(limit) else float(rounded(limit))


def _limits(dtype: str) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)
