"""Index expressions over loop variables of known range: their canonical form, their range, what is always true.

An int64 expression becomes an affine form, its terms in one order for all, and quotients, remainders and minima that the ranges
decide are none of its terms. Two indices that are equal by the rules here become the same node. Sums and products are exact even
where int64 wraps around; quotients, remainders and comparisons are decided only where it cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.index.form import Affine, division, rejoined
from ansorlite.te.index.ranges import INT64, Interval, binary, hull, quotient, span, wraps
from ansorlite.te.ops import BinaryOp, UnaryOp

_SORT_KEY: Final = itemgetter(0, 1)
_TRUE: Final = Const(True, "bool")
_FALSE: Final = Const(False, "bool")
_COMPARISONS: Final = (BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE)


def _literal(value: int) -> Const:
    return Const((value + (1 << 63)) % (1 << 64) - (1 << 63), dtypes.INDEX)


class IndexAlgebra:
    """Simplifies the expressions of one function, or of one compute over ``axes``.

    Every variable must be bound before it is met.
    """

    def __init__(self, axes: Iterable[Axis] = ()) -> None:
        self._ranges: dict[Expr, Interval] = {}
        self._ages: dict[Expr, int] = {}
        self._forms: dict[Expr, Affine] = {}
        self._simple: dict[Expr, Expr] = {}
        self._nodes: dict[Affine, Expr] = {}
        for axis in axes:
            self._term(axis, (0, max(axis.extent - 1, 0)))

    def bind(self, var: Var, extent: Expr) -> None:
        """``var`` runs from 0 to the extent."""
        self._term(var, (0, max(self.range(extent)[1] - 1, 0)))

    def bind_value(self, var: Var, value: int) -> None:
        """``var`` is always ``value``."""
        self._forms[var] = Affine((), value)

    def range(self, expr: Expr) -> Interval:
        """Bounds of an int64 expression; the bounds of int64 itself if nothing better is known."""
        return self._range(self.form(expr))

    def truth(self, cond: Expr) -> bool | None:
        """Whether a condition always or never holds; ``None`` if that is not known."""
        simple = self.simplify(cond)
        return bool(simple.value) if isinstance(simple, Const) else None

    def simplify(self, expr: Expr) -> Expr:
        """An expression of any dtype with equal value. Arithmetic on values other than int64 is not touched."""
        known = self._simple.get(expr)
        if known is None:
            known = self._simple[expr] = self._simplify(expr)
        return known

    def _simplify(self, expr: Expr) -> Expr:
        if isinstance(expr, Const):
            return expr
        if expr.dtype == dtypes.INDEX:
            return self._node(self.form(expr))
        match expr:
            case Binary(op, a, b) if op in _COMPARISONS and a.dtype == dtypes.INDEX:
                x, y = self.form(a), self.form(b)
                if self._is_exact(x) and self._is_exact(y):
                    least, greatest = binary(op, self._range(self._sum(x, y, -1)), (0, 0), "bool")
                    if least == greatest:
                        return _TRUE if least else _FALSE
                return Binary(op, self._node(x), self._node(y), expr.dtype)
            case Binary((BinaryOp.AND | BinaryOp.OR) as op, a, b):
                return self._connective(op, self.simplify(a), self.simplify(b))
            case Unary(UnaryOp.NOT, a):
                inner = self.simplify(a)
                if isinstance(inner, Const):
                    return _FALSE if inner.value else _TRUE
                return Unary(UnaryOp.NOT, inner, expr.dtype)
            case Select(cond, then, otherwise):
                decided = self.truth(cond)
                if decided is not None:
                    return self.simplify(then if decided else otherwise)
        return self._over_simple_children(expr)

    def _over_simple_children(self, expr: Expr) -> Expr:
        children = expr.children()
        fresh = tuple(self.simplify(child) for child in children)
        return expr if all(a is b for a, b in zip(children, fresh, strict=True)) else expr.with_children(fresh)

    @staticmethod
    def _connective(op: BinaryOp, a: Expr, b: Expr) -> Expr:
        neutral, absorbing = (_TRUE, _FALSE) if op is BinaryOp.AND else (_FALSE, _TRUE)
        if a is absorbing or b is absorbing:
            return absorbing
        if a is neutral or a is b:
            return b
        return a if b is neutral else Binary(op, a, b, "bool")

    # The canonical form ----------------------------------------------------------------------------------------------
    def form(self, expr: Expr) -> Affine:
        """The canonical sum of an int64 expression."""
        known = self._forms.get(expr)
        if known is None:
            known = self._forms[expr] = self._decomposed(expr)
        return known

    def _decomposed(self, expr: Expr) -> Affine:
        match expr:
            case Const():
                return Affine((), int(expr.value))
            case Binary(BinaryOp.ADD, a, b):
                return self._sum(self.form(a), self.form(b), 1)
            case Binary(BinaryOp.SUB, a, b):
                return self._sum(self.form(a), self.form(b), -1)
            case Binary(BinaryOp.MUL, a, b):
                return self._product(self.form(a), self.form(b))
            case Binary((BinaryOp.FLOORDIV | BinaryOp.MOD) as op, a, b):
                return self._divided(op, self.form(a), self.form(b))
            case Binary((BinaryOp.MIN | BinaryOp.MAX) as op, a, b):
                return self._extreme(op, self.form(a), self.form(b))
            case Unary(UnaryOp.NEG, a):
                return self.form(a).scaled(-1)
            case Select(cond, then, otherwise):
                return self._select(cond, then, otherwise)
            case Cast(a):
                values = INT64 if dtypes.is_float(a.dtype) else dtypes.limits(a.dtype)
                return self._term(Cast(self.simplify(a), dtypes.INDEX), values)
            case Var():
                raise AssertionError(f"loop variable {expr.name} is used outside of its loop")
        return self._term(self._over_simple_children(expr), INT64)

    def _term(self, expr: Expr, values: Interval) -> Affine:
        """The form of what is no sum, and lies between ``values`` unless these are too wide to tell."""
        low, high = INT64 if wraps(values) else values
        if low == high:
            form = Affine((), int(low))
        else:
            self._ranges.setdefault(expr, (low, high))
            self._ages.setdefault(expr, len(self._ages))
            form = Affine(((expr, 1),), 0)
        self._forms[expr] = form
        return form

    def _range(self, x: Affine) -> Interval:
        return span(x, self._ranges)

    def _is_exact(self, x: Affine) -> bool:
        """Whether nothing wraps around in it."""
        return not wraps(self._range(x))

    def _sum(self, x: Affine, y: Affine, factor: int) -> Affine:
        """``x + factor * y``."""
        if not x.terms:
            return Affine(y.scaled(factor).terms, x.constant + factor * y.constant)
        total = x.plus(y, factor)
        return rejoined(self._sorted(total), self.form) if len(total.terms) > 1 and y.terms else total

    def _sorted(self, x: Affine) -> Affine:
        """In one order for all: greatest coefficient first, as addresses are read; then oldest term first."""
        terms = [(-abs(coefficient), self._ages[term], term, coefficient) for term, coefficient in x.terms]
        return Affine(tuple((term, coefficient) for _, _, term, coefficient in sorted(terms, key=_SORT_KEY)), x.constant)

    def _operation(self, op: BinaryOp, x: Affine, y: Affine) -> Affine:
        """An operation whose result is no sum; not one that can wrap around what did not."""
        exact = self._is_exact(x) and self._is_exact(y)
        node = Binary(op, self._node(x), self._node(y), dtypes.INDEX)
        return self._term(node, binary(op, self._range(x), self._range(y), dtypes.INDEX) if exact else INT64)

    def _product(self, x: Affine, y: Affine) -> Affine:
        if not y.terms:
            return x.scaled(y.constant)
        if not x.terms:
            return y.scaled(x.constant)
        return self._operation(BinaryOp.MUL, x, y)

    def _divided(self, op: BinaryOp, x: Affine, y: Affine) -> Affine:
        if y.terms or y.constant <= 0 or not self._is_exact(x):
            return self._term(Binary(op, self._node(x), self._node(y), dtypes.INDEX), INT64)
        return self._quotient(x, y.constant) if op is BinaryOp.FLOORDIV else self._remainder(x, y.constant)

    def _quotient(self, x: Affine, divisor: int) -> Affine:
        whole, rest = x.divided(divisor)
        low, high = quotient(self._range(rest), divisor)
        if low == high:
            return Affine(whole.terms, whole.constant + int(low))
        exact = self._without_remainder(rest, divisor)
        if exact is not None:
            return self._sum(whole, exact[0], 1)
        step, coarse, _ = self._coarse(rest, divisor)
        if step > 1:
            return self._sum(whole, self._quotient(coarse, divisor // step), 1)
        node = Binary(BinaryOp.FLOORDIV, self._node(rest), _literal(divisor), dtypes.INDEX)
        return self._sum(whole, self._term(node, (low, high)), 1)

    def _remainder(self, x: Affine, divisor: int) -> Affine:
        _, rest = x.divided(divisor)
        low, high = quotient(self._range(rest), divisor)
        if low == high:
            return Affine(rest.terms, rest.constant - int(low) * divisor)
        exact = self._without_remainder(rest, divisor)
        if exact is not None:
            return Affine((), exact[1])
        step, coarse, fine = self._coarse(rest, divisor)
        if step > 1:
            return self._sum(fine, self._remainder(coarse, divisor // step), step)
        return self._term(Binary(BinaryOp.MOD, self._node(rest), _literal(divisor), dtypes.INDEX), (0, divisor - 1))

    def _without_remainder(self, x: Affine, divisor: int) -> tuple[Affine, int] | None:
        """Quotient and remainder of ``a + (c - a) % divisor``, which is the next number of a class: only its quotient varies."""
        for term, coefficient in x.terms:
            found = division(term)
            if found is None or found[0] is not BinaryOp.MOD or found[2] != divisor:
                continue
            dividend = self.form(found[1])
            y = self._sum(self._sum(x, Affine(((term, 1),), 0), -coefficient), dividend, coefficient)
            whole, rest = y.divided(divisor)
            if not rest.terms and self._is_exact(y) and self._is_exact(dividend):
                return self._sum(whole, self._quotient(dividend, divisor), -coefficient), rest.constant
        return None

    def _coarse(self, x: Affine, divisor: int) -> tuple[int, Affine, Affine]:
        """A step > 1 that divides the divisor, such that ``x = step * coarse + fine`` with ``0 <= fine < step``; 1 if none does.

        ``fine`` cannot carry, so the quotient is that of ``coarse`` alone.
        """
        candidates = {math.gcd(coefficient, divisor) for _, coefficient in x.terms}
        candidates.add(math.gcd(divisor, *(coefficient for _, coefficient in x.terms)))
        for step in sorted(candidates - {1}, reverse=True):
            coarse, fine = x.divided(step)
            low, high = self._range(fine)
            if low >= 0 and high < step:
                return step, coarse, fine
        return 1, x, Affine((), 0)

    def _extreme(self, op: BinaryOp, x: Affine, y: Affine) -> Affine:
        if self._is_exact(x) and self._is_exact(y):
            low, high = self._range(self._sum(x, y, -1))
            if high <= 0 or low >= 0:
                return x if (high <= 0) == (op is BinaryOp.MIN) else y
        return self._operation(op, x, y)

    def _select(self, cond: Expr, then: Expr, otherwise: Expr) -> Affine:
        decided = self.truth(cond)
        if decided is not None:
            return self.form(then if decided else otherwise)
        x, y = self.form(then), self.form(otherwise)
        node = Select(self.simplify(cond), self._node(x), self._node(y), dtypes.INDEX)
        return self._term(node, hull(self._range(x), self._range(y)))

    def _node(self, x: Affine) -> Expr:
        """The expression of a sum: what is added first, then what is subtracted."""
        known = self._nodes.get(x)
        if known is not None:
            return known
        result: Expr | None = None
        constant = x.constant
        for term, coefficient in sorted(x.terms, key=lambda each: each[1] < 0):
            if coefficient < 0 and result is None and constant > 0:
                result, constant = _literal(constant), 0
            negative = coefficient < 0 and result is not None
            factor = -coefficient if negative else coefficient
            product = term if factor == 1 else Binary(BinaryOp.MUL, term, _literal(factor), dtypes.INDEX)
            op = BinaryOp.SUB if negative else BinaryOp.ADD
            result = product if result is None else Binary(op, result, product, dtypes.INDEX)
        if result is None:
            result = _literal(constant)
        elif constant:
            op = BinaryOp.ADD if constant > 0 else BinaryOp.SUB
            result = Binary(op, result, _literal(abs(constant)), dtypes.INDEX)
        self._nodes[x] = result
        self._forms.setdefault(result, x)
        return result
