"""Interval arithmetic: between what values an expression lies.

Sums are handled as affine forms, so that ``i - i`` is 0 and not an interval; sums of independent variables have exact bounds.
Everything else is conservative. What is said of forms, quotients and remainders holds for numbers of one program and for
columns of a population alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias, overload

from ansorlite.columns.arithmetic import equal, floor_divided, where
from ansorlite.columns.tape import Number
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.index.form import Affine, form_of
from ansorlite.te.ops import BinaryOp, UnaryOp
from ansorlite.te.traversal import walk

#: An int, or ``math.inf`` or ``-math.inf``.
Bound: TypeAlias = float
#: Least and greatest value, both inclusive.
Interval: TypeAlias = tuple[Bound, Bound]
#: The same of each program of a population.
Intervals: TypeAlias = tuple[Number, Number]

UNBOUNDED: Final[Interval] = (-math.inf, math.inf)
#: All int64.
INT64: Final[Interval] = dtypes.limits(dtypes.INDEX)


def bounds(expr: Expr, ranges: Mapping[Var, Interval] | None = None) -> Interval:
    """Between what values ``expr`` lies: never too narrow, and exact if it is affine.

    A float expression is unbounded unless it is constant; a bool is 0 or 1.

    Args:
        ranges: the interval of each variable; an axis that is not in it has its whole extent, another variable none.
    """
    known = {} if ranges is None else ranges
    intervals: dict[Expr, Interval] = {}
    if isinstance(expr, Const | Var):
        return _of_node(expr, intervals, known)
    for node in walk(expr):
        intervals[node] = _of_node(node, intervals, known)
    return intervals[expr]


# Of forms, and of their quotients and remainders -----------------------------------------------------------------


@overload
def span(form: Affine, of: Mapping[Expr, Interval]) -> Interval: ...
@overload
def span(form: Affine, of: Mapping[Expr, Intervals]) -> Intervals: ...
def span(form: Affine, of: Mapping[Expr, Intervals]) -> Intervals:
    """The least and the greatest value of a form whose terms lie between what ``of`` says. Exact if these are independent."""
    low: Number = form.constant
    high: Number = form.constant
    for term, coefficient in form.terms:
        least, greatest = of[term]
        if coefficient < 0:
            least, greatest = greatest, least
        low, high = low + coefficient * least, high + coefficient * greatest
    return low, high


@overload
def quotient(a: Interval, divisor: int) -> Interval: ...
@overload
def quotient(a: Intervals, divisor: int) -> Intervals: ...
def quotient(a: Intervals, divisor: int) -> Intervals:
    """Of ``a // divisor``, which is positive."""
    return floor_divided(a[0], divisor), floor_divided(a[1], divisor)


@overload
def remainder(a: Interval, divisor: int) -> Interval: ...
@overload
def remainder(a: Intervals, divisor: int) -> Intervals: ...
def remainder(a: Intervals, divisor: int) -> Intervals:
    """Of ``a % divisor``, which is positive."""
    first, last = quotient(a, divisor)
    same = equal(first, last)
    return where(same, a[0] - first * divisor, 0), where(same, a[1] - last * divisor, divisor - 1)


def wraps(interval: Interval) -> bool:
    """Whether int64 does not hold all of it."""
    return interval[0] < INT64[0] or interval[1] > INT64[1]


# Intervals of one node -------------------------------------------------------------------------------------------


def _of_node(node: Expr, known: Mapping[Expr, Interval], ranges: Mapping[Var, Interval]) -> Interval:
    by_operands = _by_operands(node, known, ranges)
    if node.dtype != dtypes.INDEX:
        return _within(by_operands, node.dtype)
    if not _keeps_ends(node):
        by_operands = _within(by_operands, dtypes.INDEX)
    form = form_of(node)
    if len(form.terms) == 1 and form.terms[0][0] is node:
        return by_operands
    by_terms = _within(span(form, known), dtypes.INDEX)
    return max(by_operands[0], by_terms[0]), min(by_operands[1], by_terms[1])


def _by_operands(node: Expr, known: Mapping[Expr, Interval], ranges: Mapping[Var, Interval]) -> Interval:
    match node:
        case Const():
            return node.value, node.value
        case Var() if node in ranges:
            return ranges[node]
        case Axis():
            return 0, node.extent - 1
        case _ if dtypes.is_float(node.dtype):
            return UNBOUNDED
        case Binary(op, a, b):
            return binary(op, known[a], known[b], node.dtype)
        case Unary(op, a):
            return _unary(op, known[a])
        case Cast(a):
            return known[a] if not dtypes.is_float(a.dtype) else UNBOUNDED
        case Select(cond, then, otherwise):
            x, y = known[then], known[otherwise]
            return x if known[cond] == (1, 1) else y if known[cond] == (0, 0) else hull(x, y)
        case _:
            return UNBOUNDED


def _within(interval: Interval, dtype: str) -> Interval:
    """``interval`` if ``dtype`` holds it; else (an integer wraps) all that ``dtype`` holds, which of an index is no bounds."""
    if dtypes.is_float(dtype):
        return interval
    least, greatest = dtypes.limits(dtype)
    if least <= interval[0] and interval[1] <= greatest:
        return interval
    return UNBOUNDED if dtype == dtypes.INDEX else (least, greatest)


def _keeps_ends(node: Expr) -> bool:
    """Whether a node gives one of its operands, or what is nearer to 0: where these have no bound, it does not wrap either."""
    match node:
        case Var() | Const() | Select():
            return True
        case Binary(BinaryOp.FLOORDIV, _, Const(divisor)):
            return divisor > 0
        case Binary(op):
            return op in (BinaryOp.MIN, BinaryOp.MAX, BinaryOp.MOD, BinaryOp.BITAND, BinaryOp.SHR)
    return False


def binary(op: BinaryOp, a: Interval, b: Interval, dtype: str) -> Interval:
    """Of an operation on what lies within ``a`` and ``b``, before it wraps around."""
    match op:
        case BinaryOp.ADD:
            return a[0] + b[0], a[1] + b[1]
        case BinaryOp.SUB:
            return a[0] - b[1], a[1] - b[0]
        case BinaryOp.MUL:
            return _times(a, b)
        case BinaryOp.FLOORDIV:
            return _floordiv(a, b)
        case BinaryOp.MOD:
            return _mod(a, b)
        case BinaryOp.MIN:
            return min(a[0], b[0]), min(a[1], b[1])
        case BinaryOp.MAX:
            return max(a[0], b[0]), max(a[1], b[1])
        case BinaryOp.SHR if b[0] == b[1] and 0 <= b[0] < 64:
            return quotient(a, 1 << int(b[0]))
        case BinaryOp.BITAND if dtype != "bool" and (a[0] >= 0 or b[0] >= 0):
            return 0, min(x[1] for x in (a, b) if x[0] >= 0)
        case _:
            return _condition(op, a, b)


def _condition(op: BinaryOp, a: Interval, b: Interval) -> Interval:
    match op:
        case BinaryOp.LT:
            return _decided(a[1] < b[0], a[0] >= b[1])
        case BinaryOp.LE:
            return _decided(a[1] <= b[0], a[0] > b[1])
        case BinaryOp.GT:
            return _decided(a[0] > b[1], a[1] <= b[0])
        case BinaryOp.GE:
            return _decided(a[0] >= b[1], a[1] < b[0])
        case BinaryOp.EQ:
            return _decided(a == b and a[0] == a[1], a[1] < b[0] or a[0] > b[1])
        case BinaryOp.NE:
            return _decided(a[1] < b[0] or a[0] > b[1], a == b and a[0] == a[1])
        case BinaryOp.AND:
            return min(a[0], b[0]), min(a[1], b[1])
        case BinaryOp.OR:
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return UNBOUNDED


def _decided(always: bool, never: bool) -> Interval:
    return int(always), int(not never)


def _unary(op: UnaryOp, a: Interval) -> Interval:
    match op:
        case UnaryOp.NEG:
            return -a[1], -a[0]
        case UnaryOp.ABS:
            return max(0, a[0], -a[1]), max(-a[0], a[1])
        case UnaryOp.NOT:
            return 1 - a[1], 1 - a[0]
        case _:
            return UNBOUNDED


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval that holds both."""
    return min(a[0], b[0]), max(a[1], b[1])


def _times(a: Interval, b: Interval) -> Interval:
    products = [x * y if x and y else 0 for x in a for y in b]
    return min(products), max(products)


def _floordiv(a: Interval, b: Interval) -> Interval:
    # The variable of a loop that never runs lies between 0 and -1.
    if b[0] <= 0 <= b[1] or b[0] > b[1]:
        return UNBOUNDED
    if b[0] == b[1] > 0:
        return quotient(a, int(b[0]))
    quotients = [_quotient(x, y) for x in a for y in b]
    return min(quotients), max(quotients)


def _quotient(x: Bound, y: Bound) -> Bound:
    if math.isinf(y):
        # The limit: 0, or -1 where the signs differ. An infinite x over it can be anything on the side of its sign.
        if math.isinf(x):
            return math.copysign(math.inf, x) * math.copysign(1, y)
        return 0 if x == 0 or (x > 0) == (y > 0) else -1
    if math.isinf(x):
        return x if y > 0 else -x
    return x // y


def _mod(a: Interval, b: Interval) -> Interval:
    if b[0] > 0:
        if b[0] == b[1]:
            return remainder(a, int(b[0]))
        if a[0] >= 0 and a[1] < b[0]:
            return a
        return 0, min(b[1] - 1, a[1] if a[0] >= 0 else math.inf)
    return (b[0] + 1, 0) if b[1] < 0 else UNBOUNDED
