"""Index expressions over ranges of their axes: which values they take, and whether a loop changes them."""

from __future__ import annotations

from collections.abc import Mapping

from ansorlite.analysis.affine import Affine, Quotient, Remainder
from ansorlite.columns.arithmetic import both, either, equal, floor, negated, where
from ansorlite.columns.tape import Number
from ansorlite.te.expr import Axis


def bounds(form: Affine, sizes: Mapping[Axis, Number]) -> tuple[Number, Number]:
    """The least and greatest value of a form where each axis walks ``sizes`` from 0 on."""
    low: Number = form.constant
    high: Number = form.constant
    for term, coefficient in form.terms:
        least: Number
        most: Number
        match term:
            case Quotient(inner, divisor):
                least, most = (floor(bound / divisor) for bound in bounds(inner, sizes))
            case Remainder(inner, divisor):
                start, end = bounds(inner, sizes)
                first, last = floor(start / divisor), floor(end / divisor)
                wraps = negated(equal(first, last))
                least = where(wraps, 0, start - first * divisor)
                most = where(wraps, divisor - 1, end - last * divisor)
            case _:
                assert isinstance(term, Axis)
                least, most = 0, sizes[term] - 1
        if coefficient < 0:
            least, most = most, least
        low = low + coefficient * least
        high = high + coefficient * most
    return low, high


def width(form: Affine, sizes: Mapping[Axis, Number]) -> Number:
    """How far apart the least and the greatest value are, plus one."""
    reach: Number = 0
    for term, coefficient in form.terms:
        if not isinstance(term, Axis):
            low, high = bounds(form, sizes)
            return high - low + 1
        if len(form.terms) == 1 and abs(coefficient) == 1:
            return sizes[term]
        reach = reach + abs(coefficient) * (sizes[term] - 1)
    return reach + 1


def moves(form: Affine, steps: Mapping[Axis, Number], trip: Number) -> Number:
    """Whether a form changes over ``trip`` iterations of a loop that walks some of its axes in ``steps``, the others at 0."""
    result: Number = 0
    for axis, step in steps.items():
        if axis in form.coefficients:
            return 1
        reach: dict[Axis, Number] = {other: 1 for other in form.variables if isinstance(other, Axis)}
        for term, _ in form.terms:
            low, high = bounds(Affine(((term, 1),), 0), reach | {axis: 1 + (trip - 1) * step})
            result = either(result, both(negated(equal(low, high)), negated(_returns(term, axis, step))))
    return result


def _returns(term: object, axis: Axis, step: Number) -> Number:
    """Whether ``term`` is a remainder that steps of ``axis`` are a multiple of the divisor of."""
    if not isinstance(term, Remainder) or axis not in term.inner.coefficients:
        return 0
    along = term.inner.coefficients[axis] * step / term.divisor
    return equal(along, floor(along))


def step_to(form: Affine, axis: Axis) -> int:
    """How far the form moves from all axes at 0 to ``axis`` at 1."""
    return _at(form, axis) - _at(form, None)


def _at(form: Affine, one: Axis | None) -> int:
    """The form's value where every axis is 0 except ``one``, which is 1."""
    value = form.constant
    for term, coefficient in form.terms:
        match term:
            case Quotient(inner, divisor):
                value += coefficient * (_at(inner, one) // divisor)
            case Remainder(inner, divisor):
                value += coefficient * (_at(inner, one) % divisor)
            case _:
                value += coefficient * (term is one)
    return value
