"""A loop without the iterations that change nothing runs all the others, in their order."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ansorlite.codegen import assembly
from ansorlite.codegen.trimmed import trimmed
from ansorlite.features.reference import value_of
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, If, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.platforms import build
from ansorlite.target import host, resolve
from ansorlite.te.expr import Expr, Var, const
from tests.running import called
from tests.unit.loops.build import argument, load, loop, store

K, OUTER = Var("k"), Var("i")


def iterations(nest: For, outer: int) -> list[int]:
    found, at = trimmed(nest), {OUTER: np.array(outer)}
    return list(range(int(value_of(found.begin, at)), int(value_of(found.end, at))))


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.UNROLLED])
@pytest.mark.parametrize(
    "form",
    [K + OUTER - 3, 4 - K - OUTER, K * 2 + OUTER - 5, 7 - K * 3 - OUTER, K * 2 - OUTER * 3 + 1, OUTER - K - 1],
)
def test_iterations_that_meet_a_condition(form: Expr, kind: LoopKind) -> None:
    for outer in range(-3, 12):
        for other in (K + 100, 3 - K):
            body = store(argument("x", 8), (K,), load(argument("y", 8), K))
            nest = For(K, index(6), kind, If(form >= 0, If(other >= 0, body, no_op=True), no_op=True))
            met = [{K: np.array(k), OUTER: np.array(outer)} for k in range(6)]
            meets = [k for k, at in enumerate(met) if value_of(form, at) >= 0 and value_of(other, at) >= 0]
            assert iterations(nest, outer) == meets
            assert trimmed(nest).body is body


def test_a_condition_of_something_else_stays() -> None:
    body = store(argument("x", 8), (K,), load(argument("y", 8), K))
    for condition in (K % 2 - 1 >= 0, OUTER >= 0, K > 0):
        inside = If(condition, body, no_op=True)
        nest = For(K, index(6), LoopKind.SERIAL, inside)
        assert trimmed(nest).body is inside
    needed = If(K - 1 >= 0, body)
    assert trimmed(For(K, index(6), LoopKind.SERIAL, needed)).body is needed, "without it, it would do something else"


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.UNROLLED])
def test_its_code_adds_the_same(kind: LoopKind) -> None:
    """``y[i] = sum over k of x[i + k]``, where x has nothing but zeros before 3 and from 9 on."""
    x, y = argument("x", 12), argument("y", 9)

    def row(i: Var) -> Stmt:
        def step(k: Var) -> Stmt:
            add = store(y, (i,), load(y, i) + load(x, i + k))
            return If(i + k - 3 >= 0, If(8 - i - k >= 0, add, no_op=True), no_op=True)

        return loop("k", 4, step, kind)

    start = loop("j", 9, lambda j: store(y, (j,), const(0.0, "float32")))
    function = Function("sums", (x, y), 1, block(start, loop("i", 9, row)))
    inputs = np.arange(12, dtype=np.float32)
    inputs[:3] = inputs[9:] = 0
    expected = np.lib.stride_tricks.sliding_window_view(inputs, 4).sum(axis=1)
    np.testing.assert_array_equal(called(function, host(threads=1), inputs), expected)


LANES = 8


def convolution(rows: int, taps: int, kind: LoopKind, columns: int) -> Function:
    """``c[i, j] = sum over t of a[i + t] * b[t, j]`` in one register tile, where a has nothing but zeros at both ends."""
    a, b, c = argument("a", rows + taps - 1), argument("b", taps, columns), argument("c", rows, columns)
    tile, pad = Buffer("tile", (rows, columns), "float32", Scope.REGISTER), taps // 2

    def over_tile(body: object, leave_out: object = lambda _, inside: inside) -> For:
        i, j = Var("i"), Var("j")
        columns_ = For(j, index(columns), LoopKind.VECTORIZED, body(i, j), LANES)  # type: ignore[operator]
        return For(i, index(rows), LoopKind.UNROLLED, leave_out(i, columns_))  # type: ignore[operator]

    def tap(t: Var) -> Stmt:
        def step(i: Var, j: Var) -> Store:
            return Store(tile, (i, j), load(tile, i, j) + load(a, i + t) * load(b, t, j), "c", Role.UPDATE)

        def needed(i: Var, inside: Stmt) -> Stmt:
            return If(i + t - pad >= 0, If(rows - 1 + pad - i - t >= 0, inside, no_op=True), no_op=True)

        return over_tile(step, needed)

    body = block(
        over_tile(lambda i, j: store(tile, (i, j), const(0.0, "float32"))),
        loop("t", taps, tap, kind),
        over_tile(lambda i, j: store(c, (i, j), load(tile, i, j))),
    )
    return Function("convolution", (a, b, c), 1, Alloc(tile, body))


@pytest.mark.parametrize("columns", [LANES, 3 * LANES, 3 * LANES + 1])
@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.UNROLLED])
@pytest.mark.parametrize(("rows", "taps"), [(1, 3), (5, 3), (4, 5)])
def test_a_register_tile_without_the_rows_that_a_tap_leaves_out(rows: int, taps: int, kind: LoopKind, columns: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, rows + taps - 1).astype(np.float32)
    a[: taps // 2] = a[rows + taps // 2 :] = 0
    b = rng.integers(-4, 5, (taps, columns)).astype(np.float32)
    expected = np.lib.stride_tricks.sliding_window_view(a, taps) @ b
    np.testing.assert_array_equal(called(convolution(rows, taps, kind, columns), host(threads=1), a, b), expected)


@pytest.mark.parametrize("columns", [LANES, 3 * LANES])  # row by row, and vector by vector
def test_steps_that_are_known_to_change_nothing_have_no_code(columns: int) -> None:
    target = resolve("x86-64-v3")

    def steps(kind: LoopKind) -> int:
        code = assembly(build(convolution(5, 3, kind, columns), target), target)
        return len(re.findall(r"vfmadd", code)) // (columns // LANES)

    assert steps(LoopKind.UNROLLED) == 5 * 3 - 2
    assert steps(LoopKind.SERIAL) == 5, "registers have no numbers that are computed: all rows run"
