"""Affine forms of index expressions, quotients and remainders included, against their values."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.analysis.access import accesses
from ansorlite.te.expr import Axis, Expr
from ansorlite.te.expr import const as literal
from ansorlite.te.index.affine import affine
from ansorlite.te.index.form import Affine, division
from ansorlite.te.ops import BinaryOp
from tests.unit.te.loop_reference import scalar

X, Y = Axis("x", extent=12), Axis("y", extent=7)


def index(value: int) -> Expr:
    return literal(value, "int64")


def at(form: Affine, i: int, j: int) -> int:
    """The value of a form."""
    total = form.constant
    for term, coefficient in form.terms:
        if isinstance(term, Axis):
            value = i if term is X else j
        else:
            op, dividend, divisor = division(term)
            inner = at(affine(dividend), i, j)
            value = inner // divisor if op is BinaryOp.FLOORDIV else inner % divisor
        total += coefficient * value
    return total


def value_of(expr: Expr, i: int, j: int) -> int:
    return int(scalar(expr, {X: i, Y: j}, {}))


indices = st.recursive(
    st.sampled_from([X, Y]) | st.integers(-9, 9).map(index),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
        st.tuples(inner, st.integers(-4, 4)).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.integers(1, 6)).map(lambda p: p[0] // p[1]),
        st.tuples(inner, st.integers(1, 6)).map(lambda p: p[0] % p[1]),
    ),
    max_leaves=6,
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(indices, st.integers(0, 11), st.integers(0, 6))
def test_a_form_has_the_value_of_its_expression(expr: Expr, i: int, j: int) -> None:
    form = affine(expr)
    assert form is not None
    assert at(form, i, j) == value_of(expr, i, j)
    assert value_of(form.expr(), i, j) == value_of(expr, i, j)


def test_plain_sums() -> None:
    form = affine(X * 2 + Y - X + 3)
    assert form == Affine(((X, 1), (Y, 1)), 3)
    assert affine(X - X) == Affine((), 0)


def test_the_divisible_part_leaves_a_quotient() -> None:
    assert affine((X * 6 + Y) // 3) == Affine(((X, 2), (Y // 3, 1)), 0)
    assert affine((X * 6 + Y) % 3) == Affine(((Y % 3, 1),), 0)
    assert affine((X * 6 + 7) // 3) == Affine(((X, 2),), 2)


def test_what_is_not_affine() -> None:
    assert affine(X * Y) is None
    assert affine(X // Y) is None
    assert affine(te.maximum(X, Y)) is None


def test_what_may_wrap_around_is_not_affine() -> None:
    assert affine(X * (1 << 59)) == Affine(((X, 1 << 59),), 0)
    assert affine(X * (1 << 60)) is None
    assert affine(X * (1 << 60) // 2) is None
    assert affine(X * (1 << 60) - X * (1 << 60) + Y) == Affine(((Y, 1),), 0)


def test_a_negated_axis() -> None:
    assert affine(-X + 11) == Affine(((X, -1),), 11)


def test_plain_is_one_axis_and_nothing_else() -> None:
    assert affine(X).plain is X
    assert affine(X + 0).plain is X
    assert affine(X + 1).plain is None
    assert affine(X * 2).plain is None
    assert affine(X // 2).plain is None


def test_variables_inside_of_quotients_count() -> None:
    form = affine(X // 2 + Y)
    assert form.variables == {X, Y}
    assert set(form.coefficients) == {Y, X // 2}


def test_strides_of_reads() -> None:
    a = te.placeholder((12, 7), name="A")
    b = te.compute((12, 3), lambda i, j: a[i, 2 * j + 1] + a[i // 2, 0], name="B")
    i, j = b.axes
    whole, half = accesses(b)
    assert (whole.stride(i), whole.stride(j)) == (7, 2)
    assert (half.stride(i), half.stride(j)) == (None, 0)
