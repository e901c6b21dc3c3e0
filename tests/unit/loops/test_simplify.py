"""Simplified functions mean the same, and are simple."""

from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Function, If, Load, LoopKind, block, index
from ansorlite.loops.printer import text
from ansorlite.loops.simplify import simplify
from ansorlite.te.expr import Expr, Var, binary, cast, const, select
from ansorlite.te.functions import maximum, minimum
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import substitute

from .build import argument, load, loop, store, tiled_matmul
from .strategies import arguments, functions, index_expressions

VARIABLES = (Var("i"), Var("j"), Var("k"))
EXTENTS = (7, 4, 8)


def algebra() -> IndexAlgebra:
    result = IndexAlgebra()
    for var, extent in zip(VARIABLES, EXTENTS, strict=True):
        result.bind(var, index(extent))
    return result


def value_of(expr: Expr, point: tuple[int, ...]) -> int:
    out = argument("out", dtype="int64")
    result = np.zeros((), np.int64)
    closed = substitute(expr, {var: index(x) for var, x in zip(VARIABLES, point, strict=True)})
    interpret(Function("f", (out,), 1, store(out, (), closed)), [result])
    return int(result)


@given(functions())
@settings(max_examples=40, deadline=None)
def test_simplified_function_computes_the_same(function: Function) -> None:
    arrays = arguments(function, np.random.default_rng(0))
    simple = [array.copy() for array in arrays]
    interpret(function, arrays)
    interpret(simplify(function), simple)
    for a, b in zip(arrays, simple, strict=True):
        np.testing.assert_array_equal(a, b)


@given(index_expressions(VARIABLES, 4), st.tuples(*(st.integers(0, extent - 1) for extent in EXTENTS)))
@settings(max_examples=100, deadline=None)
def test_index_expressions_keep_their_value_and_range(expr: Expr, point: tuple[int, ...]) -> None:
    rules = algebra()
    value = value_of(expr, point)
    assert value_of(rules.simplify(expr), point) == value
    low, high = rules.range(expr)
    assert low <= value <= high


A, B, C = VARIABLES
FUSED = A * 32 + B * 8 + C


@pytest.mark.parametrize(
    ("expr", "simple"),
    [
        (A * 1 + 0, "i"),
        (C + B * 8 + A * 32 - C, "i * 32 + j * 8"),
        (FUSED // 8, "i * 4 + j"),
        (FUSED % 8, "k"),
        (FUSED // 32, "i"),
        (FUSED % 32 // 8, "j"),
        (FUSED // 16, "i * 2 + j // 2"),
        (FUSED // 3 * 3 + FUSED % 3, "i * 32 + j * 8 + k"),
        ((A * 4 + B) // 28, "0"),
        (C // 4 * 4 + C % 4, "k"),
        ((A + (2 - A) % 3 + 4) // 3, "2 - (2 - i) // 3"),
        ((A + (2 - A) % 3 + 4) % 3, "0"),
        (minimum(A, 6), "i"),
        (minimum(A, 5), "min(i, 5)"),
        (maximum(A + B, B), "i + j"),
        (index(9) - A - B, "9 - i - j"),
        (-A, "i * -1"),
        (select(A < 7, A, B), "i"),
        (select(A < 6, B + 0, B * 1), "if_then_else(i < 6, j, j)"),
        (A * B * 1, "i * j"),
    ],
    ids=str,
)
def test_canonical_index(expr: Expr, simple: str) -> None:
    rules = algebra()
    # Sums are read outer loops first, as the greatest coefficient comes first and equal ones are in order of binding.
    assert str_of(rules.simplify(expr)) == simple


def str_of(expr: Expr) -> str:
    out = argument("out", dtype="int64")
    return text(store(out, (), expr)).removeprefix("out[] = ")


@pytest.mark.parametrize(
    ("cond", "truth"),
    [
        (A < 7, True),
        (A < 6, None),
        (A >= 7, False),
        (A * 4 + B <= 27, True),
        (binary(BinaryOp.EQ, A, -1), False),
        (binary(BinaryOp.NE, A, 7), True),
        (binary(BinaryOp.AND, A < 7, B < 4), True),
        (binary(BinaryOp.AND, A < 6, B > 4), False),
        (binary(BinaryOp.OR, A < 6, B < 4), True),
        (~(A < 7), False),
        (A - A > 0, False),
    ],
    ids=str,
)
def test_truth_of_conditions(cond: Expr, truth: bool | None) -> None:
    assert algebra().truth(cond) is truth


def test_equal_indices_become_one_node() -> None:
    rules = algebra()
    assert rules.simplify((A * 8 + B) * 4 + C) is rules.simplify(C + B * 4 + 32 * A)


def test_division_of_loaded_values_is_left_alone_where_it_could_wrap_around() -> None:
    n = argument("N", 1, dtype="int64")
    loaded = Load(n, (index(0),), "int64")
    assert str_of(IndexAlgebra().simplify((loaded * 4) // 4)) == "N[0] * 4 // 4"
    narrow = cast(Load(argument("S", 1, dtype="int8"), (index(0),), "int8"), "int64")
    assert str_of(IndexAlgebra().simplify((narrow * 4) // 4)) == "int64(S[0])"


def test_statements() -> None:
    x, y = argument("X", 8), argument("Y", 8)
    body = loop(
        "i",
        4,
        lambda i: loop(
            "one",
            1,
            lambda one: block(
                If(i < 4, store(y, (i * 2 + one,), select(i + one >= 0, load(x, i), 0.0))),
                If(i > 3, store(y, (i,), const(1.0, "float32"))),
                loop("none", minimum(index(0), i), lambda j: store(y, (j,), const(2.0, "float32"))),
                loop("v", minimum(index(4), i * 4 + 4), lambda v: store(y, (v,), const(3.0, "float32")), LoopKind.VECTORIZED, 4),
            ),
        ),
    )
    assert text(simplify(Function("f", (x, y), 1, body))) == dedent(
        """\
        def f(X: float32[8]) -> Y: float32[8]:
            for i in 0..4:
                Y[i * 2] = X[i]
                vectorized(4) v in 0..4:
                    Y[v] = 3.0"""
    )


def test_float_arithmetic_is_not_touched() -> None:
    x, y = argument("X", 8), argument("Y", 8)
    body = loop("i", 8, lambda i: store(y, (i,), (load(x, i) * 1.0 + 0.0) - (load(x, i) * 1.0 + 0.0)))
    assert "X[i] * 1.0 + 0.0 - (X[i] * 1.0 + 0.0)" in text(simplify(Function("f", (x, y), 1, body)))


def test_no_columns_left_over_make_the_matmul_plain() -> None:
    simple = text(simplify(tiled_matmul(4, 16, 8, 8)))
    assert "min" not in simple
    assert "for j0 in 0..2" in simple
