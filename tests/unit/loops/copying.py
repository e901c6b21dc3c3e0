"""Functions that pack an operand, for the tests of what back ends do to copies."""

from __future__ import annotations

import numpy as np

from ansorlite import te
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, Function, LoopKind, Scope, block
from ansorlite.loops.verifier import verify
from ansorlite.te.expr import Expr, Var

from .build import argument, load, loop, store


def blocks_of_rows(rows: int, columns: int, block_rows: int, width: int, across: bool = False, times: int = 1) -> Function:
    """``out = b``, through a copy of ``block_rows`` rows in panels of ``width`` columns; the last block of rows may be shorter.

    Args:
        across: whether the rows of a panel's copy are its columns.
        times: how often each block is read.
    """
    b, out = argument("b", rows, columns), argument("out", rows, columns)
    panels = columns // width
    packed = Buffer("packed", (panels, width, block_rows) if across else (panels, block_rows, width), "float32", Scope.LOCAL)

    def of(first: Var) -> Alloc:
        height = block_rows if rows % block_rows == 0 else te.minimum(block_rows, rows - first * block_rows)

        def at(panel: Var, row: Var, column: Var) -> tuple[Expr, ...]:
            return (panel, column, row) if across else (panel, row, column)

        def copied(panel: Var, row: Var, column: Var) -> Expr:
            return load(b, first * block_rows + row, panel * width + column)

        def back(panel: Var, row: Var, column: Var) -> Expr:
            return load(packed, *at(panel, row, column))

        if across:
            # Neighbours of the copy are a row apart in ``b``.
            copy = loop(
                "panel",
                panels,
                lambda p: loop(
                    "column", width, lambda c: loop("row", height, lambda r: store(packed, at(p, r, c), copied(p, r, c)))
                ),
            )
        else:
            copy = loop(
                "panel",
                panels,
                lambda p: loop(
                    "row", height, lambda r: loop("column", width, lambda c: store(packed, at(p, r, c), copied(p, r, c)))
                ),
            )
        use = loop(
            "panel",
            panels,
            lambda p: loop(
                "row",
                height,
                lambda r: loop(
                    "column",
                    width,
                    lambda c: store(out, (first * block_rows + r, p * width + c), back(p, r, c)),
                    LoopKind.VECTORIZED,
                    4,
                ),
            ),
        )
        return Alloc(packed, block(copy, loop("again", times, lambda _: use) if times > 1 else use))

    return Function("through", (b, out), 1, loop("first", -(-rows // block_rows), of))


def assert_copies(function: Function) -> None:
    """``function`` is legal, and its output is its input."""
    verify(function)
    b, out = function.params
    values = np.random.default_rng(0).standard_normal(b.shape).astype(np.float32)
    found = np.zeros(out.shape, np.float32)
    interpret(function, [values, found], reorder=np.random.default_rng(1))
    np.testing.assert_array_equal(found, values.reshape(out.shape))
