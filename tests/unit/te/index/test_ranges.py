import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.te.expr import Var
from ansorlite.te.expr import const as literal
from ansorlite.te.index.form import form_of
from ansorlite.te.index.ranges import UNBOUNDED, bounds, quotient, remainder
from ansorlite.te.traversal import free_vars, substitute
from tests.unit.te.index.expressions import I, J, index_expressions
from tests.unit.te.loop_reference import scalar


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (I, (0, 4)),
        (3 * I - 2 * J + 1, (-11, 13)),
        (I - I, (0, 0)),
        ((I + J) - (J - 2), (2, 6)),
        (I * J, (0, 24)),
        (J // 2, (0, 3)),
        (-J // 2, (-3, 0)),
        (J % 3, (0, 2)),
        (I % 9, (0, 4)),
        ((I + 10) % 10, (0, 4)),
        (te.minimum(I, J - 2), (-2, 4)),
        (te.maximum(I, J - 1), (0, 5)),
        (te.abs(I - 3), (0, 3)),
        (te.if_then_else(I < 2, J, -1), (-1, 6)),
        (te.if_then_else(I < 5, J, -1), (0, 6)),
        (I < 5, (1, 1)),
        (te.all(I >= 0, J > 6), (0, 0)),
        (te.any(I > 3, J >= 0), (1, 1)),
        (te.placeholder((4,), "uint8")[I % 4], (0, 255)),
        (te.placeholder((4,))[I % 4], UNBOUNDED),
        (I // (J - 3), UNBOUNDED),
        (J >> 1, (0, 3)),
        (J & 3, (0, 3)),
    ],
)
def test_bounds(expr, expected):
    assert bounds(expr) == expected


def test_arithmetic_that_may_wrap_has_no_bounds():
    v = Var("v")
    assert bounds(I * (1 << 61) * 4) == UNBOUNDED
    assert bounds(I * (1 << 61) * 4 // (1 << 62)) == UNBOUNDED
    assert bounds(te.maximum(v, 0) + 1) == UNBOUNDED
    assert bounds(te.cast(te.placeholder((1,), "uint64")[0], "int64")) == UNBOUNDED
    assert bounds(I * (1 << 60)) == (0, 1 << 62)


def test_ranges_override_extents_and_free_variables_are_unbounded():
    v = Var("v")
    assert bounds(I + v) == UNBOUNDED
    assert bounds(I + v, {v: (2, 3)}) == (2, 7)
    assert bounds(I * 2, {I: (1, 2)}) == (2, 4)
    assert bounds(te.maximum(v, 0)) == (0, math.inf)
    assert bounds(v // 2, {v: (5, math.inf)}) == (2, math.inf)


def test_quotients_by_what_has_no_value_are_unbounded():
    never = Var("i")  # of a loop over 0..0
    assert bounds(literal(0, "int64") // never, {never: (0, -1)}) == UNBOUNDED


@settings(deadline=None, max_examples=120)
@given(index_expressions(), st.tuples(st.integers(0, 4), st.integers(0, 6)))
def test_bounds_contain_every_value_and_affine_ones_are_exact(expr, corner):
    ranges = {I: (0, corner[0]), J: (0, corner[1])}
    values = [int(scalar(expr, {I: i, J: j}, {})) for i, j in itertools.product(range(corner[0] + 1), range(corner[1] + 1))]
    low, high = bounds(expr, ranges)
    assert low <= min(values)
    assert max(values) <= high
    if form_of(expr).over_variables:
        assert (low, high) == (min(values), max(values))


def test_substitution_narrows():
    fixed = substitute(I * 3 + J, {I: literal(2, "int64")})
    assert free_vars(fixed) == {J}
    assert bounds(fixed) == (6, 12)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.integers(-30, 30), st.integers(0, 20), st.integers(1, 12))
def test_ranges_of_quotients_are_exact_and_those_of_remainders_hold_every_value(low, length, divisor):
    values = range(low, low + length + 1)
    for of, found in ((quotient, [v // divisor for v in values]), (remainder, [v % divisor for v in values])):
        least, greatest = of((low, low + length), divisor)
        assert least <= min(found)
        assert max(found) <= greatest
        assert (least, greatest) == (min(found), max(found)) or of is remainder
    assert quotient((-math.inf, 7), divisor) == (-math.inf, 7 // divisor)
    assert remainder((low, math.inf), divisor) == (0, divisor - 1)
