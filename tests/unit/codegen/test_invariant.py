"""What is loaded or computed of it, and is the same in every iteration of a loop, is computed before the loop."""

import re
from typing import Any

import numpy as np

from ansorlite.loops.nodes import Alloc, Buffer, Function, LoopKind, Scope, Stmt, block
from ansorlite.platforms import build
from ansorlite.target import host
from ansorlite.te import functions as te
from ansorlite.te.expr import Expr, const
from tests.running import run_compiled
from tests.unit.loops.build import argument, load, loop, store

TARGET = host(threads=1)
ROWS, COLUMNS = 3, 5 * TARGET.lanes("float32") + 1


def _blocks(function: Function) -> list[str]:
    return re.split(r"^\w+:$", build(function, TARGET).llvm.split("_repeat")[0], flags=re.MULTILINE)


def _run(function: Function, *arrays: np.ndarray[Any, Any]) -> None:
    run_compiled(build(function, TARGET), function, TARGET, *arrays)


def test_the_scale_of_a_row_is_computed_once_a_row() -> None:
    x, s, z = argument("X", ROWS, COLUMNS), argument("S", ROWS), argument("Z", ROWS, COLUMNS)

    def row(i: Expr) -> Stmt:
        def element(j: Expr) -> Stmt:
            return store(z, (i, j), load(x, i, j) * te.rsqrt(load(s, i) / 7.0 + 1.0))

        return loop("j", COLUMNS, element, LoopKind.VECTORIZED, TARGET.lanes("float32"))

    function = Function("f", (x, s, z), 1, loop("i", ROWS, row))
    (scale,) = (part for part in _blocks(function) if "sqrt" in part)
    assert "store" not in scale
    assert scale.count("fdiv") == 2
    a, b = np.linspace(-1, 1, ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS), np.arange(ROWS, dtype=np.float32)
    out = np.zeros_like(a)
    _run(function, a, b, out)
    np.testing.assert_allclose(out, a / np.sqrt(b / 7 + 1)[:, None], rtol=1e-6)


def test_what_the_loop_stores_is_computed_in_the_loop() -> None:
    x, z = argument("X", COLUMNS), argument("Z", COLUMNS)

    total = Buffer("T", (1,), "float32", Scope.LOCAL)

    def step(j: Expr) -> Stmt:
        return block(store(z, (j,), te.sqrt(load(total, 0))), store(total, (0,), load(total, 0) + load(x, j)))

    body = block(store(total, (0,), const(1.0, "float32")), loop("j", COLUMNS, step))
    function = Function("f", (x, z), 1, Alloc(total, body))
    a, out = np.arange(COLUMNS, dtype=np.float32), np.zeros(COLUMNS, np.float32)
    _run(function, a, out)
    np.testing.assert_allclose(out, np.sqrt(1 + np.cumsum(a) - a), rtol=1e-6)


def test_what_a_condition_keeps_from_being_read_is_not_read_before_the_loop() -> None:
    x, s, z = argument("X", COLUMNS), argument("S", 1), argument("Z", 2, COLUMNS)

    def row(i: Expr) -> Stmt:
        def element(j: Expr) -> Stmt:
            beyond = te.sqrt(load(s, i)) * load(x, j)  # the second row has no S
            return store(z, (i, j), te.if_then_else(te.all(i < 1), beyond, load(x, j)))

        return loop("j", COLUMNS, element, LoopKind.VECTORIZED, TARGET.lanes("float32"))

    function = Function("f", (x, s, z), 1, loop("i", 2, row))
    a, out = np.arange(COLUMNS, dtype=np.float32), np.zeros((2, COLUMNS), np.float32)
    _run(function, a, np.array([4.0], np.float32), out)
    np.testing.assert_allclose(out, [2 * a, a])
