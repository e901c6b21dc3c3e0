"""Sums of products take as many steps at a time as suit a core, and compute the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from ansorlite.codegen.unroll import unroll
from ansorlite.loops.nodes import Buffer, For, Function, If, LoopKind, Stmt, statements
from ansorlite.loops.visit import trips
from ansorlite.target import resolve
from ansorlite.te.expr import Const, Expr, Var, const
from ansorlite.te.functions import minimum
from tests.unit.loops.build import add, argument, load, loop, over_tile, summed_tile
from tests.unit.loops.strategies import assert_legal_and_the_same, functions

#: 8 numbers of 32 bits to a vector.
TARGET = resolve("x86-64-v3")


def product(
    rows: int,
    columns: int,
    extent: int,
    *,
    shared: bool = True,
    end: Expr | None = None,
    lanes: int = 8,
    kind: LoopKind = LoopKind.SERIAL,
) -> Function:
    """A tile in registers of sums over ``extent`` products.

    Args:
        shared: whether the rows have what they are multiplied by in common.
        end: of the sum, if it is not its extent.
        kind: of the loop over the products.
    """
    a, b = argument("A", extent, rows), argument("B", extent, rows, columns)
    c = argument("C", rows, columns)

    def step(tile: Buffer, r: Var) -> Stmt:
        def term(i: Var, j: Var) -> Expr:
            return load(a, r, i) * load(b, r, 0 if shared else i, j)

        return over_tile(rows, columns, lanes, lambda i, j: add(tile, i, j, term(i, j)))

    def sums(tile: Buffer) -> Stmt:
        return loop("r", extent if end is None else end, lambda r: step(tile, r), kind)

    return Function("product", (a, b, c), 1, summed_tile(c, lanes, sums))


def steps(function: Function) -> int:
    """How many steps of its sum each iteration takes."""
    inside = [stmt for stmt in statements(function.body) if isinstance(stmt, For) and stmt.var.name == "step"]
    assert len(inside) <= 1
    return trips(inside[0]) if inside else 1


@pytest.mark.parametrize(
    ("rows", "columns", "extent", "wanted"),
    [
        (4, 16, 64, 4),
        (6, 16, 12, 4),
        (4, 16, 6, 2),  # what divides it
        (4, 16, 7, 1),
        (4, 32, 64, 2),  # 16 vectors
        (6, 40, 64, 2),  # 30
        (8, 32, 64, 1),  # 32
        (2, 16, 64, 1),  # as many loads as products
        (3, 8, 64, 1),
        (4, 12, 8, 4),  # the last vector is a part
    ],
)
def test_so_many_steps_that_an_iteration_does_enough(rows: int, columns: int, extent: int, wanted: int) -> None:
    function = product(rows, columns, extent)
    fresh = unroll(function, TARGET)
    assert steps(fresh) == wanted
    assert (fresh is function) == (wanted == 1)
    assert_legal_and_the_same(fresh, function)


@pytest.mark.parametrize(("name", "lanes", "wanted"), [("x86-64-v2", 4, 1), ("x86-64-v3", 8, 2), ("x86-64-v4", 16, 4)])
def test_vectors_count_not_numbers(name: str, lanes: int, wanted: int) -> None:
    assert steps(unroll(product(4, 32, 64, lanes=lanes), resolve(name))) == wanted


def test_what_loads_as_much_as_it_adds_is_left_alone() -> None:
    function = product(6, 16, 64, shared=False)
    assert unroll(function, TARGET) is function


def test_a_sum_whose_end_is_not_known_is_left_alone() -> None:
    outer = Var("outer")
    inner = product(4, 16, 64, end=minimum(const(64, "int64"), outer * 32 + 32))
    function = replace(inner, body=For(outer, const(3, "int64"), LoopKind.SERIAL, inner.body))
    assert isinstance(function.body, For)
    assert isinstance(function.body.extent, Const)
    assert unroll(function, TARGET) is function


@pytest.mark.parametrize(
    ("rows", "columns", "extent", "wanted"),
    [
        (8, 8, 32, 8),  # 64 vectors
        (14, 8, 32, 8),  # 112; half of it would be too few
        (6, 16, 60, 6),  # 72
        (6, 40, 64, 4),  # 120
        (8, 72, 4, 1),  # 72
        (1, 8, 130, 65),  # as many loads as products
    ],
)
def test_of_a_long_sum_that_was_to_be_written_out_so_many_steps_are(rows: int, columns: int, extent: int, wanted: int) -> None:
    function = product(rows, columns, extent, kind=LoopKind.UNROLLED)
    fresh = unroll(function, TARGET)
    assert steps(fresh) == wanted
    assert any(isinstance(stmt, For) and stmt.var.name == "r" and stmt.kind is LoopKind.SERIAL for stmt in statements(fresh.body))
    assert_legal_and_the_same(fresh, function)


@pytest.mark.parametrize(("rows", "columns", "extent"), [(8, 8, 16), (8, 8, 17)])
def test_a_sum_stays_written_out_that_is_short_or_cannot_be_divided(rows: int, columns: int, extent: int) -> None:
    function = product(rows, columns, extent, kind=LoopKind.UNROLLED)
    assert unroll(function, TARGET) is function


def windows(taken: Callable[[Var, Var], Expr], needed: Callable[[Var, Var], Expr] | None = None) -> Function:
    """A tile of 8 rows in registers, each the sum over 32 products of an element of A that ``taken`` says, by step and row.

    Args:
        needed: is not negative in the steps of a row that change something.
    """
    a, b, c = argument("A", 64), argument("B", 32, 8), argument("C", 8, 8)

    def row(tile: Buffer, r: Var, i: Var) -> Stmt:
        lanes = loop("j", 8, lambda j: add(tile, i, j, load(a, taken(r, i)) * load(b, r, j)), LoopKind.VECTORIZED, 8)
        return lanes if needed is None else If(needed(r, i) >= 0, lanes, no_op=True)

    def sums(tile: Buffer) -> Stmt:
        return loop("r", 32, lambda r: loop("i", 8, lambda i: row(tile, r, i), LoopKind.UNROLLED), LoopKind.UNROLLED)

    return Function("windows", (a, b, c), 1, summed_tile(c, 8, sums))


def test_elements_that_are_not_read_at_equal_distances_keep_a_sum_written_out() -> None:
    apart, near = windows(lambda r, i: r * 2 % 32 + i), windows(lambda r, i: r + i)
    assert unroll(apart, TARGET) is apart
    assert steps(unroll(near, TARGET)) == 8


def test_steps_that_change_nothing_in_some_rows_keep_a_sum_written_out() -> None:
    function = windows(lambda r, i: r + i, lambda r, i: r + i - 3)
    assert unroll(function, TARGET) is function


@given(functions())
@settings(max_examples=50, deadline=None)
def test_any_function_stays_legal_and_means_the_same(function: Function) -> None:
    assert_legal_and_the_same(unroll(function, TARGET), function)
