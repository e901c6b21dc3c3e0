"""How forms move over loops: against every value that they take, and in columns as in ints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.columns.program import ColumnProgram
from ansorlite.columns.tape import Tape
from ansorlite.te.expr import Axis, Expr
from ansorlite.te.index.affine import affine
from ansorlite.te.index.form import form_of
from ansorlite.te.index.strides import moves, step, values, width
from tests.unit.te.loop_reference import scalar

X, Y = Axis("x", extent=24), Axis("y", extent=24)
FORMS = [
    X,
    X * 3 - Y + 2,
    5 - X,
    X // 4 + Y,
    (X + Y) % 5,
    (X * 2 + Y + 3) // 6 * 7 - Y % 4,
    (X // 2 % 3 + Y) // 2,
    (X * 4 + 1) % 8,
]


def taken(expr: Expr, sizes: dict[Axis, int]) -> list[int]:
    points = itertools.product(*(range(size) for size in sizes.values()))
    return [int(scalar(expr, dict(zip(sizes, point, strict=True)), {})) for point in points]


@pytest.mark.parametrize("expr", FORMS, ids=str)
def test_values_hold_every_value_and_columns_are_the_same(expr: Expr) -> None:
    form = affine(expr)
    assert form is not None
    rows = np.array([(a, b) for a in range(6) for b in range(6)])
    tape, found = Tape(), []
    choices = [1, 2, 3, 5, 8, 24]
    sizes = {X: tape.gather(0, choices), Y: tape.gather(1, choices)}
    columns = ColumnProgram(tape, [*values(form, sizes), width(form, sizes)]).run(rows)
    for a, b in rows:
        one = {X: choices[a], Y: choices[b]}
        low, high = values(form, one)
        every = taken(expr, one)
        assert low <= min(every)
        assert max(every) <= high
        if form.over_variables:
            assert (low, high) == (min(every), max(every))
        assert width(form, one) == high - low + 1
        found.append((low, high, high - low + 1))
    np.testing.assert_array_equal(columns.T, found)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(st.sampled_from(FORMS), st.integers(1, 6), st.integers(2, 4), st.integers(0, 5))
def test_what_moves_is_what_changes(expr: Expr, length: int, trip: int, shifted: int) -> None:
    form = affine(expr)
    assert form is not None
    last = (trip - 1) * length - shifted % length
    places = [min(number * length, last) for number in range(trip)]
    along = [int(scalar(expr, {X: place, Y: 0}, {})) for place in places]
    changes = len(set(along)) > 1
    moved = moves(form, {X: (length, last)}) if X in form.variables else 0
    # Never taken for still; a remainder is told to return only where each step is a multiple of its divisor.
    assert moved >= changes
    if form.over_variables:
        assert moved == changes


def test_a_remainder_that_returns_does_not_move() -> None:
    form = affine((X * 4 + 1) % 8)
    assert form is not None
    assert [moves(form, {X: (length, 2 * length)}) for length in (1, 2, 3, 4)] == [1, 0, 1, 0]


@pytest.mark.parametrize("expr", [*FORMS, te.minimum(X * 3 + 1, 2), te.if_then_else(X < 1, Y, X * 5 + 2) * 3], ids=str)
def test_a_step_is_from_the_first_to_the_second(expr: Expr) -> None:
    for var in (X, Y):
        one = {X: 0, Y: 0} | {var: 1}
        apart = int(scalar(expr, one, {})) - int(scalar(expr, {X: 0, Y: 0}, {}))
        assert step(form_of(expr), var) == apart
