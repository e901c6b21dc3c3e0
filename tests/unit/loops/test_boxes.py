"""Which boxes of arrays phases of threads copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorlite.loops.boxes import Box, box_of
from ansorlite.loops.nodes import Buffer, For, If, Load, LoopKind, Scope, Stmt, Store, index
from ansorlite.loops.visit import stores
from ansorlite.te.expr import Binary, Const, Expr, Select, Var, const, select
from ansorlite.te.index.form import flat
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.numeric import apply
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import walk
from tests.unit.loops.build import argument, load, loop, store

X = argument("X", 40, 48, dtype="float16")
K = Var("k")
#: Core matrices: pieces of 8 of the columns of 32 rows.
CORES = Buffer("S", (4, 2, 32, 8), "float16", Scope.SHARED)
ROWS = Buffer("R", (4, 16, 16), "float16", Scope.SHARED)


def _below(a: Expr, b: int) -> Expr:
    return Binary(BinaryOp.LT, a, index(b), "bool")


def _at_least(a: Expr, b: int) -> Expr:
    return Binary(BinaryOp.GE, a, index(b), "bool")


def _both(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryOp.AND, a, b, "bool")


def cores(lanes: int = 8, *, row: Expr | int = 0, end: int | None = None, piece: int = 16, source: Buffer = X) -> For:
    """32 rows from ``row`` on, 16 columns from ``piece * k`` on, of which those from ``end`` on are zeros."""
    each = 8 // lanes

    def element(q: Expr, v: Expr) -> Stmt:
        place, step = q // each, q % each * lanes + v
        column = K * piece + place // 32 * 8 + step
        value: Expr = load(source, place % 32 + row, column)
        if end is not None:
            value = select(_below(column, end), value, const(0.0, "float16"))
        return store(CORES, (K % 4, place // 32, place % 32, step), value)

    def mine(t: Expr) -> Stmt:
        return loop("v", lanes, lambda v: element(t, v), LoopKind.VECTORIZED)

    phase = loop("t", 64 * each, mine, LoopKind.THREAD)
    assert isinstance(phase, For)
    return phase


def window(*, stride: int = 1, threads: int = 32) -> For:
    """16 rows from ``k - 1`` on and 16 columns, with zeros around the array."""

    def element(t: Expr, v: Expr) -> Stmt:
        row, column = K - 1 + t // 2 * stride, t % 2 * 8 + v
        inside = _both(_at_least(row, 0), _below(row, 40))
        return store(ROWS, (K % 4, t // 2, column), select(inside, load(X, row, column), const(0.0, "float16")))

    def mine(t: Expr) -> Stmt:
        vector = loop("v", 8, lambda v: element(t, v), LoopKind.VECTORIZED)
        return If(_below(t, 32), vector) if threads > 32 else vector

    phase = loop("t", threads, mine, LoopKind.THREAD)
    assert isinstance(phase, For)
    return phase


def digits() -> For:
    """16 steps from step ``16 * k`` on, which are taps and channels: indices whose parts do not tell threads from steps."""
    source = argument("W", 32, 3, 16, dtype="float16")

    def mine(t: Expr) -> Stmt:
        piece = K * 2 + t // 32

        def element(v: Expr) -> Stmt:
            return store(CORES, (K % 4, t // 32, t % 32, v), load(source, t % 32, piece // 2, piece % 2 * 8 + v))

        return loop("v", 8, element, LoopKind.VECTORIZED)

    phase = loop("t", 64, mine, LoopKind.THREAD)
    assert isinstance(phase, For)
    return phase


def found(phase: For, extent: int = 4) -> Box | None:
    algebra = IndexAlgebra()
    algebra.bind(K, index(extent))

    def bind(stmt: Stmt) -> None:
        while isinstance(stmt, For | If):
            if isinstance(stmt, For):
                algebra.bind(stmt.var, stmt.extent)
            stmt = stmt.body

    bind(phase)
    return box_of(phase, algebra)


def number(expr: Expr, values: Mapping[Var, int]) -> Any:
    done: dict[Expr, Any] = {}
    for node in walk(expr):
        match node:
            case Var():
                done[node] = values[node]
            case Const(constant):
                done[node] = constant
            case Binary(op, a, b):
                done[node] = apply(op, (done[a], done[b]), a.dtype, node.dtype)
    return done[expr]


def copied(box: Box, memory: NDArray[Any], k: int) -> NDArray[Any]:
    """What a machine copies of ``memory``, the source's elements: the sides say which, and where there is nothing."""
    places, there = np.zeros(1, np.int64), np.ones(1, np.bool_)
    for side, begin in zip(box.sides, box.begins, strict=True):
        at = number(begin, {K: k}) + np.arange(side.count)
        places = (at[:, None] * side.stride + places).ravel()
        there = (((at >= 0) & (at < side.extent))[:, None] & there).ravel()
    return np.where(there, memory[np.where(there, places, 0)], 0)


@pytest.mark.parametrize(
    ("phase", "sides", "extent"),
    [
        (cores(), [(8, 1), (32, 48), (2, 8)], 3),
        (cores(2), [(8, 1), (32, 48), (2, 8)], 3),
        (cores(row=K * 2), [(8, 1), (32, 48), (2, 8)], 3),
        (cores(piece=4), [(8, 1), (32, 48), (2, 8)], 4),
        (cores(end=48), [(8, 1), (32, 48), (2, 8)], 4),
        (cores(end=40), [(8, 1), (32, 48), (2, 8)], 4),
        (digits(), [(8, 1), (32, 48), (2, 8)], 3),
        (window(), [(16, 1), (16, 48)], 4),
        (window(threads=64), [(16, 1), (16, 48)], 4),
    ],
)
def test_boxes_are_what_threads_copy(phase: For, sides: list[tuple[int, int]], extent: int) -> None:
    box = found(phase, extent)
    assert box is not None
    assert [(side.count, side.stride) for side in box.sides] == sides
    rng = np.random.default_rng(1)
    memory = rng.integers(1, 1000, 40 * 48)
    (stored,) = stores(phase)
    nbytes = 2 * stored.buffer.strides[0]
    assert box.nbytes == nbytes
    assert box.aligned == nbytes
    for k in range(extent):
        expected = np.zeros(box.nbytes // 2, np.int64)
        begin = number(box.to.expr(), {K: k})
        for at, taken in _elements(phase, k):
            expected[at - begin] = 0 if taken is None else memory[taken]
        np.testing.assert_array_equal(copied(box, memory, k), expected)


def _elements(phase: For, k: int) -> list[tuple[int, int | None]]:
    """Where each element goes, and which it is; ``None``: a zero."""
    values: dict[Var, int] = {K: k}
    result: list[tuple[int, int | None]] = []

    def visit(stmt: Stmt) -> None:
        match stmt:
            case For(var, extent, _, body):
                for at in range(int(number(extent, values))):
                    values[var] = at
                    visit(body)
            case If(cond, body):
                if number(cond, values):
                    visit(body)
            case Store(value=Select(then=Load() as read) | (Load() as read)) as each:
                at = number(flat(each, each.buffer.strides).expr(), values)
                there = number(each.value.cond, values) if isinstance(each.value, Select) else True
                result.append((at, number(flat(read, read.buffer.strides).expr(), values) if there else None))

    visit(phase)
    return result


@pytest.mark.parametrize(
    "phase",
    [
        # Zeros that begin within a piece, and pieces that begin within one; rows that are not multiples of 16 bytes apart.
        cores(end=44),
        cores(piece=4, end=40),
        cores(source=argument("Y", 40, 44, dtype="float16")),
        # Every other row of an array that zeros are around.
        window(stride=2),
    ],
)
def test_what_is_no_box(phase: For) -> None:
    assert found(phase) is None


def test_zeros_in_other_places_are_no_end() -> None:

    def mine(t: Expr) -> Stmt:
        def element(v: Expr) -> Stmt:
            kept = load(X, t // 2, t % 2 * 8 + v)
            return store(ROWS, (index(0), t // 2, t % 2 * 8 + v), select(_below(t + K, 20), kept, const(0.0, "float16")))

        return loop("v", 8, element, LoopKind.VECTORIZED)

    phase = loop("t", 32, mine, LoopKind.THREAD)
    assert isinstance(phase, For)
    assert found(phase) is None
