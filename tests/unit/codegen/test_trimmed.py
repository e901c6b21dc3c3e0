"""A loop without the iterations that change nothing runs all the others, in their order."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.codegen.trimmed import trimmed
from ansorlite.features.reference import value_of
from ansorlite.loops.nodes import For, Function, If, LoopKind, Stmt, block, index
from ansorlite.target import host
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
