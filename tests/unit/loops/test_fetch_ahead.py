"""The next block of an operand is asked for while this one is used, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from ansorlite import te
from ansorlite.loops.fetch_ahead import fetch_ahead
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, Function, Prefetch, Scope, Stmt, block, statements
from ansorlite.loops.printer import text
from ansorlite.loops.visit import map_stmt
from ansorlite.platforms import build
from ansorlite.target import host
from ansorlite.te.expr import Var, const, select

from .build import argument, load, loop, store
from .copying import assert_copies, blocks_of_rows
from .strategies import assert_legal_and_the_same, functions

#: A machine for which 6 KiB do not fit into the second cache.
SMALL = replace(host(), l1=1024, l2=4096)


def fetched(function: Function, line: int = 16) -> np.ndarray:
    """(lines of the source) how often the prefetches of ``function`` ask for each, of so many elements."""
    b, out = function.params
    seen = argument("seen", *b.shape)

    def counted(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, Prefetch):
            return None
        return store(seen, stmt.load.indices, load(seen, *stmt.load.indices) + const(1.0, "float32"))

    watched = Function(function.name, (b, out, seen), 2, map_stmt(function.body, counted))
    counts = np.zeros(b.shape, np.float32)
    interpret(watched, [np.zeros(b.shape, np.float32), np.zeros(out.shape, np.float32), counts])
    return counts.reshape(-1, line).sum(axis=1)


@pytest.mark.parametrize(
    ("rows", "columns", "block_rows", "width"), [(48, 32, 6, 16), (50, 32, 8, 32), (40, 40, 6, 20), (21, 80, 3, 20)]
)
def test_the_copy_is_the_same(rows: int, columns: int, block_rows: int, width: int) -> None:
    function = blocks_of_rows(rows, columns, block_rows, width)
    fresh = fetch_ahead(function, SMALL)
    assert any(isinstance(stmt, Prefetch) for stmt in statements(fresh.body))
    assert_copies(function)
    assert_copies(fresh)


@pytest.mark.parametrize(("block_rows", "width"), [(6, 16), (6, 32), (7, 32), (5, 16)])
def test_every_line_of_the_later_blocks_is_asked_for(block_rows: int, width: int) -> None:
    function = blocks_of_rows(48, 32, block_rows, width)
    lines = fetched(fetch_ahead(function, SMALL)).reshape(48, -1)
    assert lines[block_rows:].all()
    assert not lines[:block_rows].any()


@pytest.mark.parametrize(("block_rows", "width"), [(6, 16), (6, 32), (12, 8)])
@pytest.mark.parametrize("times", [2, 5, 40])
def test_no_line_is_asked_for_again_and_again(block_rows: int, width: int, times: int) -> None:
    function = blocks_of_rows(96, 32, block_rows, width, times=times)
    lines = fetched(fetch_ahead(function, replace(SMALL, l2=8192))).reshape(96, -1)
    assert lines[block_rows:].all()
    # One line more is asked for of a run, as it may not begin with a line, and shares are rounded up.
    assert lines.sum() <= 2 * lines.size


def test_what_fits_into_the_second_cache_is_there() -> None:
    function = blocks_of_rows(48, 32, 6, 16)
    assert fetch_ahead(function, replace(SMALL, l2=8192)) is function


def bordered(rows: int, columns: int, height: int) -> Function:
    """``out = b`` with a border of one element, by blocks of ``height`` rows of a copy that has it."""
    b, out = argument("b", rows, columns), argument("out", rows + 2, columns + 2)
    pad = Buffer("pad", (height, columns + 2), "float32", Scope.LOCAL)

    def padded(first: Var, row: Var, column: Var) -> Stmt:
        at = (first * height + row - 1, column - 1)
        inside = te.all(at[0] >= 0, at[0] < rows, at[1] >= 0, at[1] < columns)
        return store(pad, (row, column), select(inside, load(b, *at), const(0.0, "float32")))

    def over(body: Callable[[Var, Var], Stmt]) -> Stmt:
        return loop("row", height, lambda row: loop("column", columns + 2, lambda column: body(row, column)))

    def of(first: Var) -> Stmt:
        used = over(lambda row, column: store(out, (first * height + row, column), load(pad, row, column)))
        return Alloc(pad, block(over(lambda row, column: padded(first, row, column)), used))

    return Function("bordered", (b, out), 1, loop("first", (rows + 2) // height, of))


@pytest.mark.parametrize(("height", "columns"), [(5, 32), (6, 30), (4, 48)])
def test_rows_with_a_border_are_asked_for_where_no_cache_has_them(height: int, columns: int) -> None:
    function = bordered(58, columns, height)
    fresh = fetch_ahead(function, replace(SMALL, l3=8192))
    assert fetch_ahead(function, replace(SMALL, l3=1 << 20)) is function
    assert_legal_and_the_same(fresh, function)
    rows = fetched(fresh, line=1).reshape(58, columns)
    # An element of each line, or a neighbour's; what is beyond the border is nobody's.
    assert rows[height - 1 :].any(axis=1).all()
    assert not rows[: height - 2].any()


def test_a_block_that_leaves_no_room_for_another_is_not_fetched() -> None:
    function = blocks_of_rows(48, 32, 12, 16)
    assert fetch_ahead(function, SMALL) is function


def test_people_and_machines_read_it() -> None:
    fresh = fetch_ahead(blocks_of_rows(48, 32, 6, 16), SMALL)
    assert "prefetch b[" in text(fresh)
    assert "@llvm.prefetch" in build(fresh, host()).llvm


@given(functions())
@settings(max_examples=50, deadline=None)
def test_any_function_stays_legal_and_means_the_same(function: Function) -> None:
    assert_legal_and_the_same(fetch_ahead(function, replace(SMALL, l2=64)), function)
