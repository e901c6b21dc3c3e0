"""What every value of an index expression is a multiple of."""

from __future__ import annotations

from math import gcd

from ansorlite.once import once_for_each
from ansorlite.te.expr import Binary, Expr, Select
from ansorlite.te.index.form import division, form_of
from ansorlite.te.ops import BinaryOp


@once_for_each
def divisor(expr: Expr) -> int:
    """The greatest number that is known to divide an int64 expression which does not wrap around; 0: it is 0."""
    form = form_of(expr)
    if form.terms != ((expr, 1),):
        return gcd(form.constant, *(factor * divisor(term) for term, factor in form.terms))
    found = division(expr)
    if found is not None:
        op, dividend, by = found
        whole = divisor(dividend)
        if op is BinaryOp.MOD:
            return gcd(whole, by)
        return whole // by if whole % by == 0 else 1
    match expr:
        case Binary(BinaryOp.MIN | BinaryOp.MAX, a, b) | Select(_, a, b):
            return gcd(divisor(a), divisor(b))
        case Binary(BinaryOp.MUL, a, b):
            return divisor(a) * divisor(b)
    return 1
