"""Register tiles are written out so that the operand of fewer registers is held, and mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from ansorlite.codegen import assembly
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.platforms import build
from ansorlite.target import host, resolve
from ansorlite.te.expr import Var, const
from tests.running import called
from tests.unit.loops.build import argument, load, loop, over_tile, store, summed_tile

#: With 16 registers of 8 elements.
AVX = resolve("x86-64-v3")
LANES = 8


def product(rows: int, columns: int, *, other_row: bool = False) -> Function:
    """``c[i, j] = sum over k of a[k, i] * b[k, j]``, in one register tile."""
    a, b, c = argument("a", 5, rows), argument("b", 5, columns), argument("c", rows, columns)

    def step(tile: Buffer, k: Var) -> Stmt:
        def update(i: Var, j: Var) -> Store:
            before = load(tile, 0 if other_row else i, j)
            return Store(tile, (i, j), before + load(a, k, i) * load(b, k, j), "c", Role.UPDATE)

        return over_tile(rows, columns, LANES, update)

    return Function("product", (a, b, c), 1, summed_tile(c, LANES, lambda tile: loop("k", 5, lambda k: step(tile, k))))


def on_the_stack(function: Function) -> int:
    """How often the machine code of ``function`` speaks of its stack."""
    return len(re.findall(r"\(%rsp\)", assembly(build(function, AVX), AVX)))


def test_more_vectors_than_rows_fit_into_the_registers() -> None:
    """2 x 6 vectors of accumulators, 2 spread elements and one vector are 15 registers; row by row they would be 19."""
    assert on_the_stack(product(2, 6 * LANES)) == 0


@pytest.mark.parametrize("columns", [6 * LANES, 6 * LANES + 2, 3 * LANES, 25, 31, LANES])
@pytest.mark.parametrize("rows", [2, 6])
def test_the_product_is_the_same(rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, shape).astype(np.float32) for shape in ((5, rows), (5, columns)))
    np.testing.assert_array_equal(called(product(rows, columns), host(threads=1), a, b), a.T @ b)


def test_a_tile_that_reads_another_row_of_itself_keeps_its_order() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((5, 2), (5, 6 * LANES)))
    expected = np.zeros((2, 6 * LANES), np.float32)
    for k in range(5):
        for i in range(2):
            expected[i] = expected[0] + a[k, i] * b[k]
    np.testing.assert_array_equal(called(product(2, 6 * LANES, other_row=True), host(threads=1), a, b), expected)


def windows(channels: int, rows: int, taps: int, columns: int = LANES) -> Function:
    """``c[o, h, w] = sum over k and t of a[k, h + t, w] * b[k, t, o]``: lanes along rows, the taps written out."""
    a, b = argument("a", 5, rows + taps - 1, columns), argument("b", 5, taps, channels)
    c = argument("c", channels, rows, columns)
    tile = Buffer("tile", c.shape, "float32", Scope.REGISTER)

    def over_tile(body: Callable[[Var, Var, Var], Store]) -> For:
        o, h, w = Var("o"), Var("h"), Var("w")
        inside = For(w, index(columns), LoopKind.VECTORIZED, body(o, h, w), LANES)
        return For(o, index(channels), LoopKind.UNROLLED, For(h, index(rows), LoopKind.UNROLLED, inside))

    def channel(k: Var) -> For:
        def tap(t: Var) -> For:
            def update(o: Var, h: Var, w: Var) -> Store:
                return Store(tile, (o, h, w), load(tile, o, h, w) + load(a, k, h + t, w) * load(b, k, t, o), "c", Role.UPDATE)

            return over_tile(update)

        return loop("t", taps, tap, LoopKind.UNROLLED)

    body = block(
        over_tile(lambda o, h, w: store(tile, (o, h, w), const(0.0, "float32"))),
        loop("k", 5, channel),
        over_tile(lambda o, h, w: store(c, (o, h, w), load(tile, o, h, w))),
    )
    return Function("windows", (a, b, c), 1, Alloc(tile, body))


@pytest.mark.parametrize(("channels", "rows"), [(2, 6), (6, 2)])
@pytest.mark.parametrize("taps", [1, 3])
def test_of_vectors_and_elements_the_fewer_are_held(channels: int, rows: int, taps: int) -> None:
    """12 accumulators, two operands and one of the other kind are 15 registers; the other way round they would be 19.

    So it is with several taps: what one reads and the next one reads again is loaded again.
    """
    assert on_the_stack(windows(channels, rows, taps)) == 0


@pytest.mark.parametrize("columns", [LANES, LANES - 2, 2 * LANES + 1])
@pytest.mark.parametrize(("channels", "rows", "taps"), [(2, 6, 3), (6, 2, 3), (3, 3, 1), (1, 7, 3), (7, 1, 2)])
def test_sums_over_windows_are_the_same(channels: int, rows: int, taps: int, columns: int) -> None:
    rng = np.random.default_rng(2)
    function = windows(channels, rows, taps, columns)
    a, b = (rng.integers(-8, 8, param.shape).astype(np.float32) for param in function.params[:2])
    read = np.lib.stride_tricks.sliding_window_view(a, taps, axis=1)
    np.testing.assert_array_equal(called(function, host(threads=1), a, b), np.einsum("khwt,kto->ohw", read, b))
