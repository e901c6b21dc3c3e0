"""Sums in registers fetch ahead what they read from front to back, where there is room for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ansorlite.loops.nodes import Alloc, Buffer, For, Function, LoopKind, Scope, Stmt, block
from ansorlite.platforms import build
from ansorlite.target import Target, host
from ansorlite.te.expr import Var, const
from tests.unit.loops.build import argument, load, loop, store


def product(rows: int, columns: int, depth: int, packed: bool = True) -> Function:
    """A register tile of an outer product summed over ``depth``; ``packed``: the rows' elements lie side by side."""
    a, b = argument("A", *((depth, rows) if packed else (rows, depth))), argument("B", depth, columns)
    c, acc = argument("C", rows, columns), Buffer("acc", (rows, columns), "float32", Scope.REGISTER)
    unrolled, vectorized, lanes = LoopKind.UNROLLED, LoopKind.VECTORIZED, host().lanes("float32")

    def over_tile(body: Callable[[Var, Var], Stmt]) -> For:
        return loop("i", rows, lambda i: loop("j", columns, lambda j: body(i, j), vectorized, lanes), unrolled)

    clear = over_tile(lambda i, j: store(acc, (i, j), const(0.0, "float32")))
    add = loop(
        "r",
        depth,
        lambda r: over_tile(
            lambda i, j: store(acc, (i, j), load(acc, i, j) + load(a, *((r, i) if packed else (i, r))) * load(b, r, j))
        ),
    )
    move = over_tile(lambda i, j: store(c, (i, j), load(acc, i, j)))
    return Function("product", (a, b, c), 1, Alloc(acc, block(clear, add, move)))


def prefetches(function: Function, target: Target | None = None) -> int:
    return build(function, target or host()).llvm.count("call void @llvm.prefetch")


LANES = host().lanes("float32")
#: Columns of two vectors or a cache line, and the lines that a step reads of them.
COLUMNS = max(2 * LANES, 16)
LINES = COLUMNS * 4 // 64


@pytest.mark.parametrize("packed", [True, False])
def test_each_line_that_an_iteration_reads_is_fetched_ahead(packed: bool) -> None:
    # Rows of their own are no single stretch of memory.
    assert prefetches(product(16, COLUMNS, 512, packed)) == LINES + packed


def test_no_line_is_fetched_again_and_again() -> None:
    assert prefetches(product(6, COLUMNS, 512)) == LINES, "6 elements are a part of a line"


@pytest.mark.parametrize("rows", range(1, 8))
def test_a_sum_that_loads_as_much_as_it_multiplies_is_left_alone(rows: int) -> None:
    vectors = COLUMNS // LANES
    room = rows * vectors - (rows + vectors)
    assert prefetches(product(rows, COLUMNS, 512, packed=False)) == (LINES if room > LINES else 0)


def test_a_short_sum_is_left_alone() -> None:
    assert prefetches(product(6, COLUMNS, 4)) == 0


def tiles() -> Function:
    """8 tiles of 16 rows, each by 2 of columns, summed over 64 steps; both operands are packed."""
    a, b, c = argument("A", 8, 64, 16), argument("B", 2, 64, COLUMNS), argument("C", 8, 2, 16, COLUMNS)
    acc = Buffer("acc", (16, COLUMNS), "float32", Scope.REGISTER)

    def over_tile(body: Callable[[Var, Var], Stmt]) -> For:
        return loop("i", 16, lambda i: loop("j", COLUMNS, lambda j: body(i, j), LoopKind.VECTORIZED, LANES), LoopKind.UNROLLED)

    def tile(at: Var, across: Var) -> Stmt:
        clear = over_tile(lambda i, j: store(acc, (i, j), const(0.0, "float32")))
        add = loop(
            "r",
            64,
            lambda r: over_tile(lambda i, j: store(acc, (i, j), load(acc, i, j) + load(a, at, r, i) * load(b, across, r, j))),
        )
        move = over_tile(lambda i, j: store(c, (at, across, i, j), load(acc, i, j)))
        return Alloc(acc, block(clear, add, move))

    return Function("tiles", (a, b, c), 1, loop("at", 8, lambda at: loop("across", 2, lambda across: tile(at, across))))


@pytest.mark.parametrize(
    ("room", "wanted"),
    [
        (64 << 10, 0),  # the rows of a tile are read again for the next columns, and all columns for the next rows
        (64 * 4 * (16 + COLUMNS), LINES),  # columns of both tiles do not fit beside the rows
        (4096, LINES + 1),  # nothing is there when it is read again
    ],
)
def test_what_a_loop_around_has_read_before_is_not_fetched(room: int, wanted: int) -> None:
    assert prefetches(tiles(), replace(host(), l1=room)) == wanted
