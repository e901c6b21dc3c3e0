"""Of rows that several passes read, the last pass asks for the next ones, and computes what it did."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from ansorlite.loops.nodes import Alloc, Buffer, Function, LoopKind, Scope, Stmt, block
from ansorlite.platforms import build
from ansorlite.target import Target, host, resolve
from ansorlite.te.expr import Var, const
from tests.running import called
from tests.targets import WIDE
from tests.unit.loops.build import argument, load, loop, store

ROWS, COLUMNS = 64, 96
#: A machine whose cores keep 16 KiB: of 24 that are read.
SMALL = replace(WIDE, l1=4096, l2=16 << 10, threads=1)


def passes(
    rows_at_once: int = 1, shift: int = 0, times: int = 2, kind: LoopKind = LoopKind.SERIAL, in_place: bool = False
) -> Function:
    """``y[i] = x[i] - sum of x[i]``: a pass that sums, and one that subtracts.

    Args:
        rows_at_once: of an iteration of the loop over rows.
        shift: columns by which what the second pass reads is further on.
        times: 1: a pass that only doubles the row.
        kind: of the loop over rows.
        in_place: whether the second pass stores to ``x`` itself.
    """
    x, y = argument("x", ROWS + 1, COLUMNS), argument("y", ROWS + 1, COLUMNS)
    total = Buffer("total", (rows_at_once,), "float32", Scope.LOCAL)
    to = x if in_place else y

    def over_rows(of: Var, second: bool) -> Stmt:
        def element(r: Var, j: Var) -> Stmt:
            i = of * rows_at_once + r
            if not second:
                return store(total, (r,), load(total, r) + load(x, i, j))
            read = load(x, i, j + shift)
            return store(to, (i, j), read - load(total, r) if times > 1 else read * const(2.0, "float32"))

        lanes = LoopKind.VECTORIZED if second else LoopKind.SERIAL
        width = COLUMNS - shift if second else COLUMNS
        return loop("r", rows_at_once, lambda r: loop("j", width, lambda j: element(r, j), lanes, 16 if second else 1))

    def row(i: Var) -> Stmt:
        clear = loop("r", rows_at_once, lambda r: store(total, (r,), const(0.0, "float32")))
        first = [clear, over_rows(i, False)] if times > 1 else [clear]
        return Alloc(total, block(*first, over_rows(i, True)))

    return Function("passes", (x, y), 1, loop("i", ROWS // rows_at_once, row, kind))


def distances(function: Function, target: Target = SMALL) -> list[int]:
    """How many bytes ahead the code asks for lines, of each of its prefetches."""
    code = str(build(function, target).llvm)
    asked = re.findall(r"call void @llvm\.prefetch\.p0\(ptr (%\w+), i32 0, i32 2", code)
    known = dict(re.findall(r"(%\w+) = getelementptr i8, ptr %\w+, i64 (\d+)", code))
    return [int(known[name]) for name in asked]


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
@pytest.mark.parametrize("rows_at_once", [1, 2])
def test_the_last_pass_asks_for_what_the_next_iteration_reads(rows_at_once: int, kind: LoopKind) -> None:
    function = passes(rows_at_once, kind=kind)
    assert distances(function, replace(SMALL, threads=2, l2=8 << 10)) == [rows_at_once * COLUMNS * 4]


@pytest.mark.parametrize(
    "function",
    [passes(times=1), passes(shift=16), passes(in_place=True)],
    ids=["one pass goes on by itself", "others are read", "they are written"],
)
def test_nothing_else_is_asked_for(function: Function) -> None:
    assert not distances(function)


def test_what_cores_keep_is_there() -> None:
    assert not distances(passes(), replace(SMALL, l2=32 << 10))
    assert not distances(passes(), replace(SMALL, threads=2))


def test_a_row_that_leaves_no_room_is_not_asked_for() -> None:
    assert not distances(passes(rows_at_once=16))


def test_vectors_that_are_parts_of_lines_are_joined() -> None:
    """Whatever the vectors are, a line is asked for once."""
    narrow = replace(resolve("x86-64-v3"), l1=4096, l2=16 << 10, threads=1)
    assert distances(passes(), narrow) == [COLUMNS * 4]


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
def test_it_computes_the_same(kind: LoopKind) -> None:
    x = np.random.default_rng(0).integers(-8, 8, (ROWS + 1, COLUMNS)).astype(np.float32)
    here = replace(host(threads=1 if kind is LoopKind.SERIAL else 2), l2=4 << 10)
    found = called(passes(kind=kind), here, x)
    np.testing.assert_array_equal(found[:ROWS], x[:ROWS] - x[:ROWS].sum(axis=1, keepdims=True))
