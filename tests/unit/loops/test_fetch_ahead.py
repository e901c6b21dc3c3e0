"""The next block of an operand is asked for while this one is used, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from ansorlite.loops.fetch_ahead import fetch_ahead
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Function, Prefetch, Stmt, statements
from ansorlite.loops.printer import text
from ansorlite.loops.visit import map_stmt
from ansorlite.platforms import build
from ansorlite.target import host
from ansorlite.te.expr import const

from .build import argument, load, store
from .copying import assert_copies, blocks_of_rows
from .strategies import assert_legal_and_the_same, functions

#: A machine for which 6 KiB do not fit into the second cache.
SMALL = replace(host(), l1=1024, l2=4096)


def fetched(function: Function) -> np.ndarray:
    """(lines of the source) how often the prefetches of ``function`` ask for each."""
    b, out = function.params
    seen = argument("seen", *b.shape)

    def counted(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, Prefetch):
            return None
        return store(seen, stmt.load.indices, load(seen, *stmt.load.indices) + const(1.0, "float32"))

    watched = Function(function.name, (b, out, seen), 2, map_stmt(function.body, counted))
    counts = np.zeros(b.shape, np.float32)
    interpret(watched, [np.zeros(b.shape, np.float32), np.zeros(out.shape, np.float32), counts])
    return counts.reshape(-1, 16).sum(axis=1)


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
