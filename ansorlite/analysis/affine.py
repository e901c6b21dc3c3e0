"""Index expressions as affine forms: ``sum(coefficient * axis) + constant``, quotients and remainders included as terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from ansorlite.once import once_for_each
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Binary, Const, Expr, Var
from ansorlite.te.ops import BinaryOp

#: Iterations that no loop has whose extent is not known.
_LONGEST_LOOP: Final = 1 << 31


@dataclass(frozen=True)
class Quotient:
    """``inner // divisor``, as a term of an affine form; the divisor is positive."""

    inner: Affine
    divisor: int


@dataclass(frozen=True)
class Remainder:
    """``inner % divisor``, as a term of an affine form; the divisor is positive."""

    inner: Affine
    divisor: int


Term: TypeAlias = Var | Quotient | Remainder


@dataclass(frozen=True)
class Affine:
    """``sum(coefficient * variable) + constant``.

    Attributes:
        terms: (term, coefficient) pairs, coefficients never 0, no term twice, in order of first appearance.
    """

    terms: tuple[tuple[Term, int], ...]
    constant: int

    @cached_property
    def coefficients(self) -> dict[Term, int]:
        return dict(self.terms)

    @cached_property
    def variables(self) -> frozenset[Var]:
        """Every variable in it, inside of quotients and remainders too."""
        inner = (t.inner.variables if isinstance(t, Quotient | Remainder) else frozenset((t,)) for t, _ in self.terms)
        return frozenset[Var]().union(*inner)

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
        for term_, coefficient in self.terms:
            plain = _term_expr(term_)
            term = plain if coefficient == 1 else plain * coefficient
            total = term if total is None else total + term
        if total is None:
            return Const(self.constant, dtypes.INDEX)
        return total + self.constant if self.constant else total

    def __add__(self, other: Affine) -> Affine:
        total = dict(self.terms)
        for var, coefficient in other.terms:
            total[var] = total.get(var, 0) + coefficient
        return Affine(tuple((v, c) for v, c in total.items() if c), self.constant + other.constant)

    def scaled(self, factor: int) -> Affine:
        return Affine(tuple((v, c * factor) for v, c in self.terms) if factor else (), self.constant * factor)


def _term_expr(term: Term) -> Expr:
    match term:
        case Quotient(inner, divisor):
            return inner.expr() // divisor
        case Remainder(inner, divisor):
            return inner.expr() % divisor
    return term


@once_for_each
def affine(expr: Expr) -> Affine | None:
    """The affine form of an index expression, or ``None`` when it is not affine, or may wrap around."""
    form = _form(expr)
    return form if form is not None and _reach(form) < 1 << 63 else None


def _reach(form: Affine) -> int:
    """What no value of the form exceeds in magnitude."""
    return abs(form.constant) + sum(abs(coefficient) * _reach_of_term(term) for term, coefficient in form.terms)


def _reach_of_term(term: Term) -> int:
    match term:
        case Quotient(inner, divisor):
            return _reach(inner) // divisor + 1
        case Remainder(_, divisor):
            return divisor
        case Axis():
            return term.extent
    return _LONGEST_LOOP


def _form(expr: Expr) -> Affine | None:
    match expr:
        case Var():
            return Affine(((expr, 1),), 0)
        case Const(value=bool()):
            return None
        case Const(value=int() as value):
            return Affine((), value)
        case Binary(op=op, a=a, b=b):
            x, y = affine(a), affine(b)
            if x is None or y is None:
                return None
            if op is BinaryOp.ADD:
                return x + y
            if op is BinaryOp.SUB:
                return x + y.scaled(-1)
            if op is BinaryOp.MUL and not y.terms:
                return x.scaled(y.constant)
            if op is BinaryOp.MUL and not x.terms:
                return y.scaled(x.constant)
            if op in (BinaryOp.FLOORDIV, BinaryOp.MOD) and not y.terms and y.constant > 0:
                return _divided(x, y.constant, op)
    return None


def _divided(form: Affine, divisor: int, op: BinaryOp) -> Affine:
    """Quotient or remainder, the exactly divisible part taken out."""
    exact = Affine(tuple((t, c // divisor) for t, c in form.terms if c % divisor == 0), form.constant // divisor)
    rest = Affine(tuple((t, c) for t, c in form.terms if c % divisor), form.constant % divisor)
    if op is BinaryOp.MOD:
        return Affine(((Remainder(rest, divisor), 1),), 0) if rest.terms else Affine((), rest.constant)
    return exact + Affine(((Quotient(rest, divisor), 1),), 0) if rest.terms else exact
