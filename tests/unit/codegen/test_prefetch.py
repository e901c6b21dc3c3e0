"""Sums in registers fetch ahead what they read from front to back, where there is room for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansorlite.loops.nodes import Buffer, Function, Stmt
from ansorlite.platforms import build
from ansorlite.target import Target, host
from ansorlite.te.expr import Expr, Var
from tests.unit.loops.build import add, argument, load, loop, over_tile, summed_tile

LANES = host().lanes("float32")
#: Columns of two vectors or a cache line, and the lines that a step reads of them.
COLUMNS = max(2 * LANES, 16)
LINES = COLUMNS * 4 // 64
#: Of sums: odd, so that their loops take one step at a time.
DEPTH = 511


def product(rows: int, columns: int, depth: int, packed: bool = True) -> Function:
    """A register tile of an outer product summed over ``depth``; ``packed``: the rows' elements lie side by side."""
    a, b = argument("A", *((depth, rows) if packed else (rows, depth))), argument("B", depth, columns)
    c = argument("C", rows, columns)

    def step(tile: Buffer, r: Var) -> Stmt:
        def term(i: Var, j: Var) -> Expr:
            return load(a, *((r, i) if packed else (i, r))) * load(b, r, j)

        return over_tile(rows, columns, LANES, lambda i, j: add(tile, i, j, term(i, j)))

    return Function("product", (a, b, c), 1, summed_tile(c, LANES, lambda tile: loop("r", depth, lambda r: step(tile, r))))


def prefetches(function: Function, target: Target | None = None) -> int:
    return build(function, target or host()).llvm.count("call void @llvm.prefetch")


@pytest.mark.parametrize("packed", [True, False])
def test_each_line_that_an_iteration_reads_is_fetched_ahead(packed: bool) -> None:
    # Rows of their own are no single stretch of memory.
    assert prefetches(product(16, COLUMNS, DEPTH, packed)) == LINES + packed


def test_no_line_is_fetched_again_and_again() -> None:
    assert prefetches(product(6, COLUMNS, DEPTH)) == LINES, "6 elements are a part of a line"


@pytest.mark.parametrize("rows", range(1, 8))
def test_a_sum_that_loads_as_much_as_it_multiplies_is_left_alone(rows: int) -> None:
    vectors = COLUMNS // LANES
    room = rows * vectors - (rows + vectors)
    assert prefetches(product(rows, COLUMNS, DEPTH, packed=False)) == (LINES if room > LINES else 0)


def test_a_short_sum_is_left_alone() -> None:
    assert prefetches(product(6, COLUMNS, 4)) == 0


def tiles() -> Function:
    """8 tiles of 16 rows, each by 2 of columns, summed over 65 steps; both operands are packed."""
    a, b, c = argument("A", 8, 65, 16), argument("B", 2, 65, COLUMNS), argument("C", 8, 2, 16, COLUMNS)

    def tile_at(at: Var, across: Var) -> Stmt:
        def step(tile: Buffer, r: Var) -> Stmt:
            return over_tile(16, COLUMNS, LANES, lambda i, j: add(tile, i, j, load(a, at, r, i) * load(b, across, r, j)))

        return summed_tile(c, LANES, lambda tile: loop("r", 65, lambda r: step(tile, r)), at, across)

    return Function("tiles", (a, b, c), 1, loop("at", 8, lambda at: loop("across", 2, lambda across: tile_at(at, across))))


@pytest.mark.parametrize(
    ("room", "wanted"),
    [
        (64 << 10, 0),  # the rows of a tile are read again for the next columns, and all columns for the next rows
        (65 * 4 * (16 + COLUMNS), LINES),  # columns of both tiles do not fit beside the rows
        (4096, LINES + 1),  # nothing is there when it is read again
    ],
)
def test_what_a_loop_around_has_read_before_is_not_fetched(room: int, wanted: int) -> None:
    assert prefetches(tiles(), replace(host(), l1=room)) == wanted
