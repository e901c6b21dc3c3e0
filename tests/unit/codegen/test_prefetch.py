"""Sums in registers fetch ahead what they read from front to back, where there is room for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansorlite.loops.nodes import Alloc, Buffer, For, Function, LoopKind, Scope, Stmt, block
from ansorlite.platforms import build
from ansorlite.target import host
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


def prefetches(function: Function) -> int:
    return build(function, host()).llvm.count("call void @llvm.prefetch")


@pytest.mark.parametrize("packed", [True, False])
def test_each_line_that_an_iteration_reads_is_fetched_ahead(packed: bool) -> None:
    lanes = host().lanes("float32")
    lines = -(-2 * lanes * 4 // 64)
    # Rows of their own are no single stretch of memory.
    assert prefetches(product(6, 2 * lanes, 512, packed)) == lines + packed


def test_a_sum_that_loads_as_much_as_it_multiplies_is_left_alone() -> None:
    assert prefetches(product(1, 2 * host().lanes("float32"), 512)) == 0


def test_a_short_sum_is_left_alone() -> None:
    assert prefetches(product(6, 2 * host().lanes("float32"), 4)) == 0
