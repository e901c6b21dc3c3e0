"""Index expressions as affine forms: ``sum(coefficient * axis) + constant``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr, Var
from ansorlite.te.ops import BinaryOp


@dataclass(frozen=True)
class Affine:
    """``sum(coefficient * variable) + constant``.

    Attributes:
        terms: (variable, coefficient) pairs, coefficients never 0, no variable twice, in order of first appearance.
    """

    terms: tuple[tuple[Var, int], ...]
    constant: int

    @property
    def coefficients(self) -> dict[Var, int]:
        return dict(self.terms)

    @property
    def plain(self) -> Var | None:
        """The variable, when the form is just one variable and nothing else."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 and self.constant == 0 else None

    def expr(self) -> Expr:
        """The form as an index expression with nothing superfluous in it."""
        total: Expr | None = None
        for var, coefficient in self.terms:
            term = var if coefficient == 1 else var * coefficient
            total = term if total is None else total + term
        if total is None:
            return Const(self.constant, dtypes.INDEX)
        return total + self.constant if self.constant else total

    def __add__(self, other: Affine) -> Affine:
        total = self.coefficients
        for var, coefficient in other.terms:
            total[var] = total.get(var, 0) + coefficient
        return Affine(tuple((v, c) for v, c in total.items() if c), self.constant + other.constant)

    def scaled(self, factor: int) -> Affine:
        return Affine(tuple((v, c * factor) for v, c in self.terms) if factor else (), self.constant * factor)


@lru_cache(maxsize=65536)
def affine(expr: Expr) -> Affine | None:
    """The affine form of an index expression, or ``None`` when it is not affine."""
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
    return None
