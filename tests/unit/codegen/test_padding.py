"""What lies behind rows of temporaries, and past their end: zeros, so that lanes that are off compute with ordinary numbers."""

from __future__ import annotations

import re

import pytest

from ansorlite.codegen.workspace import PADDED_ROWS, layout
from ansorlite.loops.nodes import Alloc, Buffer, Function, LoopKind, Scope, Stmt, block
from ansorlite.platforms import build
from ansorlite.target import Target, resolve
from ansorlite.te.expr import Expr, Var, const
from tests.unit.loops.build import argument, load, loop, store

WIDE, PLAIN = resolve("x86-64-v4"), resolve("x86-64-v2")


def through_rows(rows: int, columns: int, scope: Scope = Scope.LOCAL, dtype: str = "float32") -> Function:
    """``Z[i, j] = 2 * X[i, j]``, by way of a temporary, a row at a time."""
    x, z = (argument(name, rows, columns, dtype=dtype) for name in "XZ")
    middle = Buffer("middle", (rows, columns), dtype, scope)

    def copy(target: Buffer, source: Buffer) -> Stmt:
        def row(i: Var) -> Stmt:
            def element(j: Var) -> Stmt:
                value: Expr = load(source, i, j)
                return store(target, (i, j), value if target is middle else value + value)

            return loop("j", columns, element, LoopKind.VECTORIZED, WIDE.lanes(dtype))

        return loop("i", rows, row)

    return Function("f", (x, z), 1, Alloc(middle, block(copy(middle, x), copy(z, middle))))


def row_of(function: Function, target: Target) -> int:
    """Elements from one row of its temporary to the next."""
    ((_, inside),) = layout(function, target).padded.items()
    return inside.shape[-1]


@pytest.mark.parametrize(("columns", "row"), [(7, 8), (9, 16), (14, 16), (8, 8), (16, 16), (17, 17), (28, 28)])
def test_short_rows_of_small_buffers_are_whole_vectors(columns: int, row: int) -> None:
    assert row_of(through_rows(5, columns), WIDE) == row
    assert row_of(through_rows(5, columns), PLAIN) == columns  # there the end of a row is done by narrower vectors, not by a mask
    assert row_of(through_rows(5, columns, Scope.GLOBAL), WIDE) == columns
    assert row_of(through_rows(PADDED_ROWS + 1, columns), WIDE) == columns


def test_a_loop_through_several_rows_reads_one_stretch() -> None:
    z, middle = argument("Z", 35), Buffer("middle", (5, 7), "float32", Scope.LOCAL)
    fill = loop("i", 35, lambda i: store(middle, (i // 7, i % 7), const(1.0, "float32")), LoopKind.VECTORIZED, 16)
    copy = loop("i", 35, lambda i: store(z, (i,), load(middle, i // 7, i % 7)), LoopKind.VECTORIZED, 16)
    assert row_of(Function("f", (z,), 1, Alloc(middle, block(fill, copy))), WIDE) == 7


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 7), (3, 9), (2, 14), (64, 14), (65, 14), (4, 16), (3, 21)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16"])
def test_padding_holds_zeros(rows: int, columns: int, dtype: str) -> None:
    """One vector past the end, and one for each row where rows are padded. Integers cost the same whatever they are."""
    function = through_rows(rows, columns, dtype=dtype)
    zeros = re.findall(r"store <\d+ x \w+> zeroinitializer", build(function, WIDE).llvm)
    padded = row_of(function, WIDE) != columns
    assert len(zeros) == (0 if dtype == "int32" else 1 + padded * rows)


def test_the_end_of_a_padded_row_is_stored_without_a_mask() -> None:
    def masked(columns: int) -> int:
        return build(through_rows(5, columns), WIDE).llvm.count("call void @llvm.masked.store")

    assert masked(14) == 1  # of the output; its rows are the caller's
    assert masked(21) == 2
