"""Copies read their sources in order, and mean the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from ansorlite import te
from ansorlite.loops.interchange import interchange
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, LoopKind, Scope, block, index, statements
from ansorlite.loops.verifier import verify
from ansorlite.te.expr import Var

from .build import argument, load, store
from .strategies import assert_legal_and_the_same, functions


def packing(panels: int, width: int, blocks: int = 1, kind: LoopKind = LoopKind.SERIAL, shift: int = 0) -> Function:
    """An operand of 40 rows is packed panel by panel, blocks of its rows within, and copied from there to the output."""
    rows = 40 // blocks
    b, out = argument("b", 40, panels * width - shift), argument("out", panels, blocks, rows, width)
    packed = Buffer("packed", (panels, blocks, rows, width), "float32", Scope.GLOBAL)
    panel, outer, row, lane = Var("panel"), Var("outer"), Var("row"), Var("lane")
    first = te.minimum(panel * width, (panels - 1) * width - shift) if shift else panel * width
    copy = store(packed, (panel, outer, row, lane), load(b, outer * rows + row, first + lane))
    inner = For(row, index(rows), LoopKind.SERIAL, For(lane, index(width), LoopKind.VECTORIZED, copy, 4))
    pack = For(panel, index(panels), kind, For(outer, index(blocks), LoopKind.SERIAL, inner))
    at = tuple(Var(name) for name in "wxyz")
    back: For | None = None
    for var, extent in reversed(list(zip(at, out.shape, strict=True))):
        back = For(var, index(extent), LoopKind.SERIAL, back or store(out, at, load(packed, *at)))
    assert back is not None
    return Function("packing", (b, out), 1, Alloc(packed, block(pack, back)))


def order(function: Function) -> list[tuple[str, LoopKind]]:
    return [(loop.var.name, loop.kind) for loop in statements(function.body) if isinstance(loop, For)][:3]


def test_rows_of_the_source_come_first() -> None:
    serial = LoopKind.SERIAL
    assert order(interchange(packing(5, 16, 2))) == [("outer", serial), ("row", serial), ("panel", serial)]


def test_a_parallel_copy_stays_parallel_in_a_loop_that_is_long_enough() -> None:
    serial, parallel = LoopKind.SERIAL, LoopKind.PARALLEL
    assert order(interchange(packing(5, 16, 2, parallel))) == [("row", parallel), ("outer", serial), ("panel", serial)]
    assert order(interchange(packing(40, 16, 2, parallel)))[0] == ("row", parallel)


@pytest.mark.parametrize("width", [4, 12])
def test_lines_that_would_be_written_in_pieces_are_left_in_order(width: int) -> None:
    function = packing(5, width)
    assert interchange(function) is function


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
@pytest.mark.parametrize(("panels", "width", "blocks", "shift"), [(5, 16, 1, 0), (3, 32, 4, 7), (20, 16, 2, 3)])
def test_the_copy_is_the_same(panels: int, width: int, blocks: int, shift: int, kind: LoopKind) -> None:
    function = packing(panels, width, blocks, kind, shift)
    fresh = interchange(function)
    assert fresh is not function
    verify(fresh)
    b, out = function.params
    values = np.random.default_rng(0).standard_normal(b.shape).astype(np.float32)
    expected, got = np.zeros(out.shape, np.float32), np.zeros(out.shape, np.float32)
    interpret(function, [values, expected])
    interpret(fresh, [values, got], reorder=np.random.default_rng(1))
    np.testing.assert_array_equal(got, expected)


@given(functions())
@settings(max_examples=50, deadline=None)
def test_any_function_stays_legal_and_means_the_same(function: Function) -> None:
    assert_legal_and_the_same(interchange(function), function)
