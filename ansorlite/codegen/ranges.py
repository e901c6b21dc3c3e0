"""Intervals of index expressions: what is provably non-negative, small, or within a buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr, Select, Var
from ansorlite.te.ops import BinaryOp


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
    if None in x or None in y:
        if x.low is not None and y.low is not None and x.low >= 0 and y.low >= 0:
            return Interval(x.low * y.low, None)
        return UNKNOWN
    corners = [a * b for a in x for b in y if a is not None and b is not None]
    return Interval(min(corners), max(corners))


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
            return Interval(_add(x.low, y.low), _add(x.high, y.high))
        case BinaryOp.SUB:
            y = _negated(y)
            return Interval(_add(x.low, y.low), _add(x.high, y.high))
        case BinaryOp.MUL:
            return _product(x, y)
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
