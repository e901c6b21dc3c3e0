"""Index expressions over loop variables of known range: their canonical form, their range, what is always true.

An int64 expression is a sum of atoms times coefficients plus a constant, where an atom is a loop variable or what
does not decompose further (a quotient, a remainder, a minimum, a loaded index). Two indices that are equal by the
rules here become the same node. Sums and products are exact even where int64 wraps around; quotients, remainders and
comparisons are decided only where it cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.ops import BinaryOp, UnaryOp

#: Least and greatest value, both included.
Range: TypeAlias = tuple[int, int]

_INT64: Final[Range] = (-(1 << 63), (1 << 63) - 1)
_SORT_KEY: Final = itemgetter(0, 1)
_TRUE: Final = Const(True, "bool")
_FALSE: Final = Const(False, "bool")


class Linear(NamedTuple):
    """``sum(coefficient * atom) + constant``; no coefficient is 0, no atom comes twice."""

    terms: tuple[tuple[Expr, int], ...]
    constant: int


def _literal(value: int) -> Const:
    return Const((value + (1 << 63)) % (1 << 64) - (1 << 63), dtypes.INDEX)


class IndexAlgebra:
    """Simplifies the expressions of one function; every variable must be bound before it is met."""

    def __init__(self) -> None:
        self._ranges: dict[Expr, Range] = {}
        self._ages: dict[Expr, int] = {}
        self._linear: dict[Expr, Linear] = {}
        self._simple: dict[Expr, Expr] = {}
        self._nodes: dict[Linear, Expr] = {}
        #: A remainder -> (the quotient of the same operands, the dividend, the divisor).
        self._quotients: dict[Expr, tuple[Expr, Linear, int]] = {}

    def bind(self, var: Var, extent: Expr) -> None:
        """``var`` runs from 0 to the extent."""
        self._atom(var, 0, max(self.range(extent)[1] - 1, 0))

    def bind_value(self, var: Var, value: int) -> None:
        """``var`` is always ``value``."""
        self._linear[var] = Linear((), value)

    def range(self, expr: Expr) -> Range:
        """Bounds of an int64 expression; the bounds of int64 itself if nothing better is known."""
        return self._range(self.linear(expr))

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
            return self._node(self.linear(expr))
        match expr:
            case Binary(op, a, b) if op in _DECIDE and a.dtype == dtypes.INDEX:
                x, y = self.linear(a), self.linear(b)
                if self._is_exact(x) and self._is_exact(y):
                    decided = _DECIDE[op](*self._range(self._sum(x, y, -1)))
                    if decided is not None:
                        return _TRUE if decided else _FALSE
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

    # The linear form -------------------------------------------------------------------------------------------------
    def linear(self, expr: Expr) -> Linear:
        """The canonical sum of an int64 expression."""
        known = self._linear.get(expr)
        if known is None:
            known = self._linear[expr] = self._decompose(expr)
        return known

    def _decompose(self, expr: Expr) -> Linear:
        match expr:
            case Const():
                return Linear((), int(expr.value))
            case Binary(BinaryOp.ADD, a, b):
                return self._sum(self.linear(a), self.linear(b), 1)
            case Binary(BinaryOp.SUB, a, b):
                return self._sum(self.linear(a), self.linear(b), -1)
            case Binary(BinaryOp.MUL, a, b):
                return self._product(self.linear(a), self.linear(b))
            case Binary((BinaryOp.FLOORDIV | BinaryOp.MOD) as op, a, b):
                return self._divided(op, self.linear(a), self.linear(b))
            case Binary((BinaryOp.MIN | BinaryOp.MAX) as op, a, b):
                return self._extreme(op, self.linear(a), self.linear(b))
            case Unary(UnaryOp.NEG, a):
                return self._sum(Linear((), 0), self.linear(a), -1)
            case Select(cond, then, otherwise):
                return self._select(cond, then, otherwise)
            case Cast(a):
                simple = self.simplify(a)
                return self._atom(Cast(simple, dtypes.INDEX), *_dtype_range(a.dtype))
            case Var():
                raise AssertionError(f"loop variable {expr.name} is used outside of its loop")
        return self._atom(self._over_simple_children(expr), *_INT64)

    def _atom(self, expr: Expr, low: int, high: int) -> Linear:
        if low == high:
            result = Linear((), low)
        else:
            self._ranges.setdefault(expr, (low, high))
            self._ages.setdefault(expr, len(self._ages))
            result = Linear(((expr, 1),), 0)
        self._linear[expr] = result
        return result

    def _range(self, x: Linear) -> Range:
        low = high = x.constant
        for atom, coefficient in x.terms:
            a, b = self._ranges[atom]
            if coefficient > 0:
                low, high = low + coefficient * a, high + coefficient * b
            else:
                low, high = low + coefficient * b, high + coefficient * a
        return low, high

    def _is_exact(self, x: Linear) -> bool:
        """Whether int64 holds every value, so that nothing wraps around."""
        low, high = self._range(x)
        return _INT64[0] <= low and high <= _INT64[1]

    def _sum(self, x: Linear, y: Linear, factor: int) -> Linear:
        """``x + factor * y``."""
        constant = x.constant + factor * y.constant
        if not y.terms or not factor:
            return Linear(x.terms, constant)
        total = dict(x.terms)
        for atom, coefficient in y.terms:
            total[atom] = total.get(atom, 0) + factor * coefficient
        return self._rejoined(Linear(self._sorted(total), constant))

    def _sorted(self, total: dict[Expr, int]) -> tuple[tuple[Expr, int], ...]:
        """In one order for all: greatest coefficient first, as addresses are read; then oldest atom first."""
        terms = [(-abs(coefficient), self._ages[atom], atom, coefficient) for atom, coefficient in total.items() if coefficient]
        return tuple((atom, coefficient) for _, _, atom, coefficient in sorted(terms, key=_SORT_KEY))

    def _rejoined(self, x: Linear) -> Linear:
        """``a // c * c + a % c`` is ``a``: what splitting a fused loop leaves."""
        for atom, coefficient in x.terms:
            if atom in self._quotients:
                quotient, dividend, divisor = self._quotients[atom]
                if dict(x.terms).get(quotient) == coefficient * divisor:
                    rest = tuple(term for term in x.terms if term[0] is not atom and term[0] is not quotient)
                    return self._sum(Linear(rest, x.constant), dividend, coefficient)
        return x

    def _product(self, x: Linear, y: Linear) -> Linear:
        if not y.terms:
            return self._sum(Linear((), 0), x, y.constant)
        if not x.terms:
            return self._sum(Linear((), 0), y, x.constant)
        corners = [a * b for a in self._range(x) for b in self._range(y)]
        low, high = min(corners), max(corners)
        fits = _INT64[0] <= low and high <= _INT64[1] and self._is_exact(x) and self._is_exact(y)
        node = Binary(BinaryOp.MUL, self._node(x), self._node(y), dtypes.INDEX)
        return self._atom(node, *((low, high) if fits else _INT64))

    def _divided(self, op: BinaryOp, x: Linear, y: Linear) -> Linear:
        if y.terms or y.constant <= 0 or not self._is_exact(x):
            return self._atom(Binary(op, self._node(x), self._node(y), dtypes.INDEX), *_INT64)
        return self._quotient(x, y.constant) if op is BinaryOp.FLOORDIV else self._remainder(x, y.constant)

    def _quotient(self, x: Linear, divisor: int) -> Linear:
        whole = Linear(tuple((a, c // divisor) for a, c in x.terms if c % divisor == 0), x.constant // divisor)
        rest = Linear(tuple((a, c) for a, c in x.terms if c % divisor), x.constant % divisor)
        low, high = (bound // divisor for bound in self._range(rest))
        if low == high:
            return Linear(whole.terms, whole.constant + low)
        exact = self._without_remainder(rest, divisor)
        if exact is not None:
            return self._sum(whole, exact[0], 1)
        step, _ = self._coarse(rest, divisor)
        if step > 1:
            coarse = Linear(tuple((a, c // step) for a, c in rest.terms if c % step == 0), rest.constant // step)
            return self._sum(whole, self._quotient(coarse, divisor // step), 1)
        node = Binary(BinaryOp.FLOORDIV, self._node(rest), _literal(divisor), dtypes.INDEX)
        return self._sum(whole, self._atom(node, low, high), 1)

    def _remainder(self, x: Linear, divisor: int) -> Linear:
        rest = Linear(tuple((a, c) for a, c in x.terms if c % divisor), x.constant % divisor)
        low, high = (bound // divisor for bound in self._range(rest))
        if low == high:
            return Linear(rest.terms, rest.constant - low * divisor)
        exact = self._without_remainder(rest, divisor)
        if exact is not None:
            return Linear((), exact[1])
        step, fine = self._coarse(rest, divisor)
        if step > 1:
            coarse = Linear(tuple((a, c // step) for a, c in rest.terms if c % step == 0), rest.constant // step)
            return self._sum(fine, self._remainder(coarse, divisor // step), step)
        node = Binary(BinaryOp.MOD, self._node(rest), _literal(divisor), dtypes.INDEX)
        result = self._atom(node, 0, divisor - 1)
        quotient = Binary(BinaryOp.FLOORDIV, node.a, node.b, dtypes.INDEX)
        self._quotients.setdefault(node, (quotient, rest, divisor))
        return result

    def _without_remainder(self, x: Linear, divisor: int) -> tuple[Linear, int] | None:
        """Quotient and remainder of ``a + (c - a) % divisor``, which is the next number of a class: only its quotient varies."""
        for atom, coefficient in x.terms:
            if atom not in self._quotients or self._quotients[atom][2] != divisor:
                continue
            quotient, dividend, _ = self._quotients[atom]
            y = self._sum(self._sum(x, Linear(((atom, 1),), 0), -coefficient), dividend, coefficient)
            if all(c % divisor == 0 for _, c in y.terms) and self._is_exact(y):
                whole = Linear(tuple((a, c // divisor) for a, c in y.terms), y.constant // divisor)
                return self._sum(whole, self.linear(quotient), -coefficient), y.constant % divisor
        return None

    def _coarse(self, x: Linear, divisor: int) -> tuple[int, Linear]:
        """A step > 1 that divides the divisor, such that ``x = step * coarse + fine`` with ``0 <= fine < step``.

        ``fine`` cannot carry, so the quotient is that of ``coarse`` alone. Returns (1, ...) if there is none.
        """
        candidates = {math.gcd(coefficient, divisor) for _, coefficient in x.terms}
        candidates.add(math.gcd(divisor, *(coefficient for _, coefficient in x.terms)))
        for step in sorted(candidates - {1}, reverse=True):
            fine = Linear(tuple((a, c) for a, c in x.terms if c % step), x.constant % step)
            low, high = self._range(fine)
            if low >= 0 and high < step:
                return step, fine
        return 1, Linear((), 0)

    def _extreme(self, op: BinaryOp, x: Linear, y: Linear) -> Linear:
        (a, b), (c, d) = self._range(x), self._range(y)
        if not (self._is_exact(x) and self._is_exact(y)):
            return self._atom(Binary(op, self._node(x), self._node(y), dtypes.INDEX), *_INT64)
        low, high = self._range(self._sum(x, y, -1))
        if high <= 0 or low >= 0:
            return x if (high <= 0) == (op is BinaryOp.MIN) else y
        pick = min if op is BinaryOp.MIN else max
        return self._atom(Binary(op, self._node(x), self._node(y), dtypes.INDEX), pick(a, c), pick(b, d))

    def _select(self, cond: Expr, then: Expr, otherwise: Expr) -> Linear:
        decided = self.truth(cond)
        if decided is not None:
            return self.linear(then if decided else otherwise)
        x, y = self.linear(then), self.linear(otherwise)
        node = Select(self.simplify(cond), self._node(x), self._node(y), dtypes.INDEX)
        (a, b), (c, d) = self._range(x), self._range(y)
        exact = self._is_exact(x) and self._is_exact(y)
        return self._atom(node, *((min(a, c), max(b, d)) if exact else _INT64))

    def _node(self, x: Linear) -> Expr:
        """The expression of a sum: what is added first, then what is subtracted."""
        known = self._nodes.get(x)
        if known is not None:
            return known
        result: Expr | None = None
        constant = x.constant
        for atom, coefficient in sorted(x.terms, key=lambda term: term[1] < 0):
            if coefficient < 0 and result is None and constant > 0:
                result, constant = _literal(constant), 0
            negative = coefficient < 0 and result is not None
            factor = -coefficient if negative else coefficient
            term = atom if factor == 1 else Binary(BinaryOp.MUL, atom, _literal(factor), dtypes.INDEX)
            op = BinaryOp.SUB if negative else BinaryOp.ADD
            result = term if result is None else Binary(op, result, term, dtypes.INDEX)
        if result is None:
            result = _literal(constant)
        elif constant:
            op = BinaryOp.ADD if constant > 0 else BinaryOp.SUB
            result = Binary(op, result, _literal(abs(constant)), dtypes.INDEX)
        self._nodes[x] = result
        self._linear.setdefault(result, x)
        return result


def _dtype_range(dtype: str) -> Range:
    if dtype == "bool":
        return 0, 1
    if not dtypes.is_integer(dtype) or dtype == "uint64":
        return _INT64
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _less(low: int, high: int) -> bool | None:
    return True if high < 0 else False if low >= 0 else None


def _less_equal(low: int, high: int) -> bool | None:
    return True if high <= 0 else False if low > 0 else None


def _equal(low: int, high: int) -> bool | None:
    return True if low == high == 0 else False if low > 0 or high < 0 else None


def _negated(decided: bool | None) -> bool | None:
    return None if decided is None else not decided


#: A comparison, decided by the range of the difference of its sides.
_DECIDE: Final[dict[BinaryOp, Callable[[int, int], bool | None]]] = {
    BinaryOp.LT: _less,
    BinaryOp.LE: _less_equal,
    BinaryOp.GT: lambda low, high: _negated(_less_equal(low, high)),
    BinaryOp.GE: lambda low, high: _negated(_less(low, high)),
    BinaryOp.EQ: _equal,
    BinaryOp.NE: lambda low, high: _negated(_equal(low, high)),
}
