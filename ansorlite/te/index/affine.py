"""Index expressions of axes: affine forms whose terms are axes, and quotients and remainders of such forms."""

from __future__ import annotations

from ansorlite.once import once_for_each
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr, Var
from ansorlite.te.index.form import Affine, form_of
from ansorlite.te.index.ranges import Interval, bounds, span, wraps
from ansorlite.te.ops import BinaryOp


@once_for_each
def affine(expr: Expr) -> Affine | None:
    """The affine form of an index expression, or ``None`` when it is of something else, or may wrap around.

    The dividends of quotients and remainders are such forms, and what can be divided is no part of them.
    """
    form = form_of(expr)
    total = Affine((), form.constant)
    for term, coefficient in form.terms:
        inner = _of_term(term)
        if inner is None:
            return None
        total = total.plus(inner, coefficient)
    return None if wraps(reach(total)) else total


def reach(form: Affine) -> Interval:
    """Between what values a form lies: exact if its terms are independent of one another."""
    return span(form, {term: bounds(term) for term, _ in form.terms})


def _of_term(term: Expr) -> Affine | None:
    if isinstance(term, Var):
        return Affine(((term, 1),), 0)
    if not isinstance(term, Binary) or (x := affine(term.a)) is None or (y := affine(term.b)) is None:
        return None
    if term.op is BinaryOp.MUL and not (x.terms and y.terms):
        return y.scaled(x.constant) if not x.terms else x.scaled(y.constant)
    if term.op is BinaryOp.FLOORDIV and not y.terms and y.constant > 0:
        whole, rest = x.divided(y.constant)
        return whole.plus(_divided(term.op, rest, y.constant))
    if term.op is BinaryOp.MOD and not y.terms and y.constant > 0:
        return _divided(term.op, x.divided(y.constant)[1], y.constant)
    return None


def _divided(op: BinaryOp, rest: Affine, divisor: int) -> Affine:
    """Quotient or remainder of what cannot be divided further: a term, if it is not known."""
    if not rest.terms:
        return Affine((), rest.constant if op is BinaryOp.MOD else 0)
    return Affine(((Binary(op, rest.expr(), Const(divisor, dtypes.INDEX), dtypes.INDEX), 1),), 0)
