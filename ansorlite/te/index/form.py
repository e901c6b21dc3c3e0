"""The affine form of an index expression: a constant plus multiples of terms.

A term is a variable, or an expression that is no sum (a quotient, a remainder, a minimum, a loaded index). int64 arithmetic
wraps, so it is a ring, and the form is always exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from ansorlite.once import once_for_each
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr, Unary, Var
from ansorlite.te.ops import BinaryOp, UnaryOp
from ansorlite.te.traversal import free_vars

#: An expression whose form would have more terms than this is one term.
_MOST_TERMS: Final = 32


@dataclass(frozen=True)
class Affine:
    """``sum(coefficient * term) + constant``.

    Attributes:
        terms: (term, coefficient) pairs, coefficients never 0, no term twice.
    """

    terms: tuple[tuple[Expr, int], ...]
    constant: int

    @cached_property
    def coefficients(self) -> dict[Expr, int]:
        return dict(self.terms)

    @cached_property
    def variables(self) -> frozenset[Var]:
        """Every variable in it, inside of terms too."""
        return frozenset[Var]().union(*(free_vars(term) for term, _ in self.terms))

    @property
    def over_variables(self) -> bool:
        """Whether every term is a variable."""
        return all(isinstance(term, Var) for term, _ in self.terms)

    @property
    def plain(self) -> Var | None:
        """The variable, when the form is just one variable and nothing else."""
        if len(self.terms) != 1 or self.terms[0][1] != 1 or self.constant != 0:
            return None
        term = self.terms[0][0]
        return term if isinstance(term, Var) else None

    def expr(self) -> Expr:
        """The form as an index expression with nothing superfluous in it."""
        total: Expr | None = None
        for term, coefficient in self.terms:
            product = term if coefficient == 1 else term * coefficient
            total = product if total is None else total + product
        if total is None:
            return Const(self.constant, dtypes.INDEX)
        return total + self.constant if self.constant else total

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """``self + factor * other``, terms in order of first appearance."""
        constant = self.constant + factor * other.constant
        if not other.terms or not factor:
            return Affine(self.terms, constant)
        total = dict(self.terms)
        for term, coefficient in other.terms:
            total[term] = total.get(term, 0) + factor * coefficient
        return Affine(tuple((term, coefficient) for term, coefficient in total.items() if coefficient), constant)

    def __add__(self, other: Affine) -> Affine:
        return self.plus(other)

    def without(self, term: Expr) -> Affine:
        """All but the multiple of ``term``."""
        return Affine(tuple(each for each in self.terms if each[0] is not term), self.constant)

    def scaled(self, factor: int) -> Affine:
        if factor == 1:
            return self
        return Affine(tuple((term, c * factor) for term, c in self.terms) if factor else (), self.constant * factor)

    def divided(self, divisor: int) -> tuple[Affine, Affine]:
        """``(whole, rest)`` such that the form is ``divisor * whole + rest``, and nothing in ``rest`` can be divided further."""
        whole = tuple((term, c // divisor) for term, c in self.terms if c % divisor == 0)
        rest = tuple((term, c) for term, c in self.terms if c % divisor)
        return Affine(whole, self.constant // divisor), Affine(rest, self.constant % divisor)


@once_for_each
def form_of(expr: Expr) -> Affine:
    """The form of an int64 expression, terms in order of first appearance."""
    opaque = Affine(((expr, 1),), 0)
    form = opaque
    match expr:
        case Const():
            return Affine((), int(expr.value))
        case Binary(BinaryOp.ADD, a, b):
            form = form_of(a).plus(form_of(b))
        case Binary(BinaryOp.SUB, a, b):
            form = form_of(a).plus(form_of(b), -1)
        case Binary(BinaryOp.MUL, a, b):
            x, y = form_of(a), form_of(b)
            form = x.scaled(y.constant) if not y.terms else y.scaled(x.constant) if not x.terms else opaque
        case Unary(UnaryOp.NEG, a):
            form = form_of(a).scaled(-1)
    return form if len(form.terms) <= _MOST_TERMS else opaque


def slack(condition: Expr, of: Callable[[Expr], Affine | None] = form_of) -> Affine | None:
    """The form that is not negative just where a comparison of indices holds; ``None`` of another condition.

    Args:
        of: gives the form of a side, if it has one.
    """
    if not isinstance(condition, Binary) or condition.a.dtype != dtypes.INDEX:
        return None
    a, b = of(condition.a), of(condition.b)
    if a is None or b is None:
        return None
    match condition.op:
        case BinaryOp.GE:
            return a.plus(b, -1)
        case BinaryOp.GT:
            return a.plus(b, -1) + Affine((), -1)
        case BinaryOp.LE:
            return b.plus(a, -1)
        case BinaryOp.LT:
            return b.plus(a, -1) + Affine((), -1)
    return None


def division(node: Expr) -> tuple[BinaryOp, Expr, int] | None:
    """``(operator, dividend, divisor)``, if ``node`` is an index's quotient or remainder by a positive literal."""
    match node:
        case Binary(BinaryOp.FLOORDIV | BinaryOp.MOD as op, dividend, Const(divisor), dtypes.INDEX) if divisor > 0:
            return op, dividend, int(divisor)
    return None


def rejoined(form: Affine, of: Callable[[Expr], Affine] = form_of, nested: bool = False) -> Affine:
    """``a // n * n + a % n`` is ``a``: what splitting a fused loop leaves, and an index that two dimensions share.

    Args:
        of: gives the form of ``a``.
        nested: whether ``a // (m * n)`` is known for the quotient of ``a // m``, too.
    """
    for term, coefficient in form.terms:
        if isinstance(term, Binary) and term.op is BinaryOp.MOD and (found := division(term)) is not None:
            _, dividend, divisor = found
            for quotient in _quotients(term, dividend, divisor, nested):
                if form.coefficients.get(quotient) == coefficient * divisor:
                    both = Affine(((quotient, divisor), (term, 1)), 0)
                    return rejoined(form.plus(both, -coefficient).plus(of(dividend), coefficient), of, nested)
    return form


def _quotients(remainder: Binary, dividend: Expr, divisor: int, nested: bool) -> Iterator[Expr]:
    """What goes with a remainder, as it may be written: ``a // n``; of ``x // m``, where ``nested``, ``x // (m * n)`` too."""
    # Nodes are hash-consed: an equal quotient is the very same node.
    yield Binary(BinaryOp.FLOORDIV, remainder.a, remainder.b, remainder.dtype)
    inner = division(dividend) if nested else None
    if inner is not None and inner[0] is BinaryOp.FLOORDIV:
        yield Binary(BinaryOp.FLOORDIV, inner[1], Const(inner[2] * divisor, dtypes.INDEX), dtypes.INDEX)


class Indexed(Protocol):
    """What reads or writes one element of something that has dimensions."""

    @property
    def indices(self) -> tuple[Expr, ...]: ...


@once_for_each
def flat(access: Indexed, strides: tuple[int, ...]) -> Affine:
    """The element offset of what is read or written, in a buffer of these strides."""
    total = Affine((), 0)
    for index, stride in zip(access.indices, strides, strict=True):
        total = total.plus(form_of(index), stride)
    return rejoined(total, nested=True)
