"""Affine forms of index expressions, whatever their terms are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ansorlite import te
from ansorlite.te.expr import Axis, Expr, Var
from ansorlite.te.index.form import Affine, division, form_of, rejoined
from ansorlite.te.ops import BinaryOp
from tests.unit.te.index.expressions import I, J, index_expressions
from tests.unit.te.loop_reference import scalar


def value_of(expr: Expr, i: int, j: int) -> int:
    return int(scalar(expr, {I: i, J: j}, {}))


def test_sums_and_multiples_are_taken_apart() -> None:
    form = form_of((I + 3) * 4 - (J - I) - 12)
    assert form == Affine(((I, 5), (J, -1)), 0)
    assert form.over_variables
    assert form_of(-I * 2 + I * 2) == Affine((), 0)


def test_what_is_no_sum_is_a_term() -> None:
    form = form_of(I // 2 * 3 + J + te.minimum(I, J))
    assert dict(form.terms) == {I // 2: 3, J: 1, te.minimum(I, J): 1}
    assert not form.over_variables
    assert form.variables == {I, J}


@settings(deadline=None, max_examples=60, derandomize=True)
@given(index_expressions())
def test_a_form_has_the_value_of_its_expression(expr: Expr) -> None:
    form = form_of(expr)
    assert value_of(form.expr(), 3, 5) == value_of(expr, 3, 5)
    assert value_of(rejoined(form).expr(), 3, 5) == value_of(expr, 3, 5)
    assert form_of(form.expr()) == form
    for divisor in (2, 3):
        whole, rest = form.divided(divisor)
        assert rest.plus(whole, divisor).coefficients == form.coefficients
        assert value_of(whole.expr() * divisor + rest.expr(), 3, 5) == value_of(expr, 3, 5)


def test_very_long_sums_are_one_term() -> None:
    many = [Axis(f"a{number}", extent=2) for number in range(40)]
    total: Expr = many[0]
    for axis in many[1:]:
        total = total + axis
    assert len(form_of(total).terms) < 40
    assert form_of(total).variables == set(many)


@pytest.mark.parametrize(
    ("expr", "joined"),
    [
        (I // 4 * 4 + I % 4, I),
        ((I + J) % 3 + 5 + (I + J) // 3 * 3, I + J + 5),
        (I // 4 * 8 + I % 4 * 2, I * 2),
        (I // 12 * 12 + I // 4 % 3 * 4 + I % 4, I // 12 * 12 + I // 4 % 3 * 4 + I % 4),
        (I // 4 * 4 + J % 4, I // 4 * 4 + J % 4),
    ],
)
def test_a_quotient_and_its_remainder_are_the_dividend(expr: Expr, joined: Expr) -> None:
    assert rejoined(form_of(expr)).expr() is joined


def test_quotients_of_quotients_are_joined_where_asked_for() -> None:
    assert rejoined(form_of(I // 12 * 12 + I // 4 % 3 * 4 + I % 4), nested=True).expr() is I
    apart = I // 12 * 12 + I // 4 % 6 * 4 + I % 4
    assert rejoined(form_of(apart), nested=True).expr() is apart


def test_divisions_are_by_positive_literals_of_indices() -> None:
    assert division(I // 3) == (BinaryOp.FLOORDIV, I, 3)
    assert division((I + J) % 4) == (BinaryOp.MOD, I + J, 4)
    assert division(I // -3) is None
    assert division(I // J) is None
    assert division(Var("x", "int32") // 3) is None
    assert division(I + J) is None
