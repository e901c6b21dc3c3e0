"""Interval arithmetic on integer expressions: between what values an index must lie.

Sums are handled as linear forms, so that ``i - i`` is 0 and not an interval; affine expressions of independent variables
have exact bounds. Everything else is conservative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import numpy as np

from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.ops import BinaryOp, UnaryOp
from ansorlite.te.traversal import walk

#: An int, or ``math.inf`` or ``-math.inf``.
Bound: TypeAlias = int | float
#: Least and greatest value, both inclusive.
Interval: TypeAlias = tuple[Bound, Bound]

UNBOUNDED: Final[Interval] = (-math.inf, math.inf)

#: A linear form of more terms than this is one opaque term.
_MOST_TERMS: Final = 32


@dataclass(frozen=True)
class Linear:
    """``constant + sum(coefficient * term)``; terms are variables and whatever is not linear in its operands."""

    terms: Mapping[Expr, int]
    constant: int

    @property
    def affine(self) -> bool:
        """Whether every term is a variable."""
        return all(isinstance(term, Var) for term in self.terms)


def bounds(expr: Expr, ranges: Mapping[Var, Interval] | None = None) -> Interval:
    """Between what values ``expr`` lies: never too narrow, and exact if it is affine.

    A float expression is unbounded unless it is constant; a bool is 0 or 1.

    Args:
        ranges: the interval of each variable; an axis that is not in it has its whole extent, another variable none.
    """
    known = {} if ranges is None else ranges
    intervals: dict[Expr, Interval] = {}
    forms: dict[Expr, Linear] = {}
    for node in walk(expr):
        form = _linear(node, forms)
        forms[node] = form
        by_operands = _interval(node, intervals, known)
        if not (node.dtype == dtypes.INDEX and _keeps_ends(node)):
            by_operands = _within(by_operands, node.dtype)
        if node in form.terms:
            intervals[node] = by_operands
        else:
            by_terms = _within(_of_linear(form, intervals), node.dtype)
            intervals[node] = (max(by_operands[0], by_terms[0]), min(by_operands[1], by_terms[1]))
    return intervals[expr]


def linear(expr: Expr) -> Linear:
    """The linear form of an index expression: equal to it as int64 arithmetic is, which wraps around."""
    forms: dict[Expr, Linear] = {}
    for node in walk(expr):
        forms[node] = _linear(node, forms)
    return forms[expr]


# Linear forms ----------------------------------------------------------------------------------------------------


def _linear(node: Expr, forms: Mapping[Expr, Linear]) -> Linear:
    opaque = Linear({node: 1}, 0)
    if node.dtype != dtypes.INDEX:
        return opaque
    form = opaque
    match node:
        case Const():
            return Linear({}, int(node.value))
        case Binary(BinaryOp.ADD, a, b):
            form = _sum(forms[a], forms[b], 1)
        case Binary(BinaryOp.SUB, a, b):
            form = _sum(forms[a], forms[b], -1)
        case Binary(BinaryOp.MUL, a, b) if not forms[b].terms:
            form = _sum(Linear({}, 0), forms[a], forms[b].constant)
        case Binary(BinaryOp.MUL, a, b) if not forms[a].terms:
            form = _sum(Linear({}, 0), forms[b], forms[a].constant)
        case Unary(UnaryOp.NEG, a):
            form = _sum(Linear({}, 0), forms[a], -1)
    return form if len(form.terms) <= _MOST_TERMS else opaque


def _sum(a: Linear, b: Linear, factor: int) -> Linear:
    """``a + factor * b``."""
    terms = dict(a.terms)
    for term, coefficient in b.terms.items():
        total = terms.pop(term, 0) + factor * coefficient
        if total:
            terms[term] = total
    return Linear(terms, a.constant + factor * b.constant)


def _of_linear(form: Linear, intervals: Mapping[Expr, Interval]) -> Interval:
    low: Bound = form.constant
    high: Bound = form.constant
    for term, coefficient in form.terms.items():
        least, greatest = _times(intervals[term], (coefficient, coefficient))
        low, high = low + least, high + greatest
    return low, high


# Intervals of one node -------------------------------------------------------------------------------------------


def _interval(node: Expr, known: Mapping[Expr, Interval], ranges: Mapping[Var, Interval]) -> Interval:
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
            return _binary(op, known[a], known[b], node.dtype)
        case Unary(op, a):
            return _unary(op, known[a])
        case Cast(a):
            return known[a] if not dtypes.is_float(a.dtype) else UNBOUNDED
        case Select(cond, then, otherwise):
            return _select(known[cond], known[then], known[otherwise])
        case _:
            return UNBOUNDED


def _within(interval: Interval, dtype: str) -> Interval:
    """``interval`` if ``dtype`` holds it; else (an integer wraps) all that ``dtype`` holds, which of an index is no bounds."""
    if dtypes.is_float(dtype):
        return interval
    least, greatest = _limits(dtype)
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


@cache
def _limits(dtype: str) -> tuple[int, int]:
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _binary(op: BinaryOp, a: Interval, b: Interval, dtype: str) -> Interval:
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
            return _floordiv(a, (1 << int(b[0]), 1 << int(b[0])))
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


def _select(cond: Interval, then: Interval, otherwise: Interval) -> Interval:
    if cond == (1, 1):
        return then
    if cond == (0, 0):
        return otherwise
    return min(then[0], otherwise[0]), max(then[1], otherwise[1])


def _times(a: Interval, b: Interval) -> Interval:
    products = [x * y if x and y else 0 for x in a for y in b]
    return min(products), max(products)


def _floordiv(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return UNBOUNDED
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
        if a[0] >= 0 and a[1] < b[0]:
            return a
        if b[0] == b[1] and not math.isinf(a[0]) and not math.isinf(a[1]) and a[0] // b[0] == a[1] // b[0]:
            return a[0] % b[0], a[1] % b[0]
        return 0, min(b[1] - 1, a[1] if a[0] >= 0 else math.inf)
    return (b[0] + 1, 0) if b[1] < 0 else UNBOUNDED
