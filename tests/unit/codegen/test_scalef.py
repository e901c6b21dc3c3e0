"""Exponentials with and without an instruction that scales by a power of two: the same bits, at every number of lanes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from ansorlite.loops.nodes import Function, LoopKind, Stmt
from ansorlite.platforms import build
from ansorlite.target import NAMED as TARGETS
from ansorlite.te import dtypes
from ansorlite.te.expr import Unary, Var
from ansorlite.te.ops import UnaryOp
from tests import running
from tests.unit.loops.build import argument, load, loop, store

WITH, WITHOUT = (replace(TARGETS[name], threads=1) for name in ("x86-64-v4", "x86-64-v3"))
#: Where results are infinite, normal, denormal and 0, and what is no number.
ENDS: Final = {
    "float32": (np.inf, 1e30, 89.0, 88.72, 1.0, 0.0, -0.0, -87.3, -87.4, -95.0, -103.9, -104.0, -105.0, -1e30, -np.inf, np.nan),
    "float64": (np.inf, 1e300, 710.0, 709.7, 1.0, 0.0, -0.0, -708.3, -708.4, -720.0, -745.1, -745.2, -1e300, -np.inf, np.nan),
}


def function(op: UnaryOp, dtype: str, lanes: int, n: int) -> Function:
    x, y = argument("X", n, dtype=dtype), argument("Y", n, dtype=dtype)

    def body(i: Var) -> Stmt:
        return store(y, (i,), Unary(op, load(x, i), dtype))

    return Function("f", (x, y), 1, loop("i", n, body, LoopKind.VECTORIZED, lanes))


@pytest.mark.parametrize("op", [UnaryOp.EXP, UnaryOp.TANH, UnaryOp.SIGMOID, UnaryOp.ERF], ids=lambda op: op.name)
@pytest.mark.parametrize("lanes", [2, 7, 16, 48])
@pytest.mark.parametrize("dtype", list(ENDS))
def test_the_same_bits(dtype: str, lanes: int, op: UnaryOp) -> None:
    rng = np.random.default_rng(lanes)
    ends = np.asarray(ENDS[dtype], dtypes.NUMPY[dtype])
    x = np.concatenate([ends, rng.uniform(-110, 95, 97).astype(ends.dtype)])
    made = function(op, dtype, lanes, len(x))
    assert ("scalef" in build(made, WITH).llvm) == (op is not UnaryOp.ERF or dtype == "float32")
    assert "scalef" not in build(made, WITHOUT).llvm
    np.testing.assert_array_equal(running.called(made, WITH, x), running.called(made, WITHOUT, x))
