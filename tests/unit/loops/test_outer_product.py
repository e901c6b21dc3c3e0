"""Register tiles hold the operand of fewer registers, and mean the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, LoopKind, Role, Scope, Store, block, index, statements
from ansorlite.loops.outer_product import outer_product
from ansorlite.loops.verifier import verify
from ansorlite.te.expr import Var, const

from .build import argument, load, store
from .strategies import assert_legal_and_the_same, functions

LANES = 4


def product(rows: int, columns: int, *, other_row: bool = False) -> Function:
    """``c[i, j] = sum over k of a[k, i] * b[k, j]``, in one register tile."""
    a, b, c = argument("a", 5, rows), argument("b", 5, columns), argument("c", rows, columns)
    tile = Buffer("tile", (rows, columns), "float32", Scope.REGISTER)
    k = Var("k")

    def nest(body: Callable[[Var, Var], Store]) -> For:
        i, j = Var("i"), Var("j")
        return For(i, index(rows), LoopKind.UNROLLED, For(j, index(columns), LoopKind.VECTORIZED, body(i, j), LANES))

    def update(i: Var, j: Var) -> Store:
        term = load(tile, 0 if other_row else i, j) + load(a, k, i) * load(b, k, j)
        return Store(tile, (i, j), term, "c", Role.UPDATE)

    body = block(
        nest(lambda i, j: store(tile, (i, j), const(0.0, "float32"))),
        For(k, index(5), LoopKind.SERIAL, nest(update)),
        nest(lambda i, j: store(c, (i, j), load(tile, i, j))),
    )
    return Function("product", (a, b, c), 1, Alloc(tile, body))


def update_loops(function: Function) -> list[str]:
    """The loops around the updates, outermost first."""
    (sum_,) = (loop for loop in statements(function.body) if isinstance(loop, For) and loop.var.name == "k")
    return [loop.var.name for loop in statements(sum_.body) if isinstance(loop, For)]


def test_more_vectors_than_rows_are_walked_outside() -> None:
    assert update_loops(outer_product(product(2, 6 * LANES))) == ["j_vector", "i", "j"]


def test_what_is_left_of_a_row_comes_last() -> None:
    assert update_loops(outer_product(product(2, 6 * LANES + 2))) == ["j_vector", "i", "j", "i", "j"]


@pytest.mark.parametrize(("rows", "vectors"), [(6, 2), (3, 3), (2, 1)])
def test_fewer_vectors_than_rows_stay(rows: int, vectors: int) -> None:
    function = product(rows, vectors * LANES)
    assert outer_product(function) is function


def test_a_tile_that_reads_another_row_of_itself_stays() -> None:
    function = product(2, 6 * LANES, other_row=True)
    assert outer_product(function) is function


@pytest.mark.parametrize("columns", [24, 25, 31])
def test_the_product_is_the_same(columns: int) -> None:
    function = product(2, columns)
    fresh = outer_product(function)
    assert fresh is not function
    verify(fresh)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(param.shape).astype(np.float32) for param in function.params[:2])
    expected, got = np.zeros((2, columns), np.float32), np.zeros((2, columns), np.float32)
    interpret(function, [a, b, expected])
    interpret(fresh, [a, b, got], reorder=np.random.default_rng(1))
    np.testing.assert_array_equal(got, expected)


@given(functions())
@settings(max_examples=50, deadline=None)
def test_any_function_stays_legal_and_means_the_same(function: Function) -> None:
    assert_legal_and_the_same(outer_product(function), function)
