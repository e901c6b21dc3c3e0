"""Forms over loops: how many values an index takes where each axis walks so much, and whether and how far a loop moves it."""

from __future__ import annotations

from collections.abc import Mapping

from ansorlite.columns.arithmetic import both, either, equal, floor, modulo, negated, total
from ansorlite.columns.tape import Number
from ansorlite.te.expr import Axis, Expr, Var
from ansorlite.te.index.affine import affine
from ansorlite.te.index.form import Affine, division
from ansorlite.te.index.ranges import Intervals, bounds, quotient, remainder, span
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import free_vars


def values(form: Affine, sizes: Mapping[Axis, Number]) -> Intervals:
    """The least and greatest value of a form of axes where each axis walks ``sizes`` from 0 on."""
    return span(form, {term: _values_of_term(term, sizes) for term, _ in form.terms})


def _values_of_term(term: Expr, sizes: Mapping[Axis, Number]) -> Intervals:
    if isinstance(term, Axis):
        return 0, sizes[term] - 1
    op, dividend, divisor = _division(term)
    inner = values(dividend, sizes)
    return quotient(inner, divisor) if op is BinaryOp.FLOORDIV else remainder(inner, divisor)


def _division(term: Expr) -> tuple[BinaryOp, Affine, int]:
    """Operator, dividend and divisor of a term of a form of axes that is no axis."""
    found = division(term)
    assert found is not None
    op, expr, divisor = found
    dividend = affine(expr)
    assert dividend is not None
    return op, dividend, divisor


def width(form: Affine, sizes: Mapping[Axis, Number]) -> Number:
    """How far apart the least and the greatest value are, plus one."""
    reach: Number = 0
    for term, coefficient in form.terms:
        if not isinstance(term, Axis):
            low, high = values(form, sizes)
            return high - low + 1
        if len(form.terms) == 1 and abs(coefficient) == 1:
            return sizes[term]
        reach = reach + abs(coefficient) * (sizes[term] - 1)
    return reach + 1


def moves(form: Affine, walked: Mapping[Axis, tuple[Number, Number]]) -> Number:
    """Whether a form changes over the iterations of a loop that walks some of its axes, the others at 0.

    Args:
        walked: how far the loop's second iteration, and how far its last, stands from its first, along each axis.
    """
    result: Number = 0
    for axis, (step, last) in walked.items():
        if axis in form.coefficients:
            return 1
        reach: dict[Axis, Number] = {other: 1 for other in form.variables if isinstance(other, Axis)}
        for term, _ in form.terms:
            low, high = _values_of_term(term, reach | {axis: 1 + last})
            still = both(_returns(term, axis, step), _returns(term, axis, last))
            result = either(result, both(negated(equal(low, high)), negated(still)))
    return result


def _returns(term: Expr, axis: Axis, step: Number) -> Number:
    """Whether ``term`` is a remainder that ``step`` elements of ``axis`` are a multiple of the divisor of."""
    if isinstance(term, Axis):
        return 0
    op, dividend, divisor = _division(term)
    if op is BinaryOp.FLOORDIV or axis not in dividend.coefficients:
        return 0
    along = dividend.coefficients[axis] * step / divisor
    return equal(along, floor(along))


def reached(form: Affine, walked: Mapping[Axis, Number]) -> Number:
    """How far a form of axes is, where some of them are at ``walked`` and the others at 0, from where all are at 0."""
    found = ((term, c) for term, c in form.terms if not walked.keys().isdisjoint(free_vars(term)))
    return total((_value_at(term, walked) - _value_at(term, {})) * c for term, c in found)


def _value_at(term: Expr, walked: Mapping[Axis, Number]) -> Number:
    if isinstance(term, Axis):
        return walked.get(term, 0)
    op, dividend, divisor = _division(term)
    inner = total(_value_at(each, walked) * c for each, c in dividend.terms) + dividend.constant
    return floor(inner / divisor) if op is BinaryOp.FLOORDIV else modulo(inner, divisor)


def step(form: Affine, var: Var) -> int:
    """How far the form moves from all variables at 0 to ``var`` at 1. No term that ``var`` is in is loaded."""
    return int(sum(coefficient * (_at(term, var, 1) - _at(term, var, 0)) for term, coefficient in form.terms))


def _at(term: Expr, var: Var, value: int) -> float:
    """The value of ``term`` where every variable is 0 except ``var``, which is ``value``."""
    variables = free_vars(term)
    return bounds(term, {v: (value, value) if v is var else (0, 0) for v in variables})[0] if var in variables else 0
