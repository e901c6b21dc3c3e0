"""Vectors stored across their lanes: transposed in registers, right to the element, and nothing beyond is touched."""

import re

import numpy as np
import pytest

from ansorlite.codegen import assembly
from ansorlite.codegen.vectorized import lanes_of
from ansorlite.loops.nodes import Function, LoopKind, Stmt
from ansorlite.platforms import build
from ansorlite.target import host, resolve
from ansorlite.te.expr import Expr
from tests.running import run, run_compiled
from tests.unit.codegen.test_memory import edge_array
from tests.unit.loops.build import argument, load, loop, store

TARGET = host(threads=1)


def across(rows: int, columns: int, lanes: int, dtype: str, kind: LoopKind = LoopKind.UNROLLED) -> Function:
    """``Z[j, i] = X[i, j] + X[i, j]``, a vector of ``j`` at a time."""
    x, z = argument("X", rows, columns, dtype=dtype), argument("Z", columns, rows, dtype=dtype)

    def row(i: Expr) -> Stmt:
        return loop("j", columns, lambda j: store(z, (j, i), load(x, i, j) + load(x, i, j)), LoopKind.VECTORIZED, lanes)

    return Function("f", (x, z), 1, loop("i", rows, row, kind))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16"])
@pytest.mark.parametrize("rows", [2, 3, 7, 8, 9, 14, 16, 17, 41])
@pytest.mark.parametrize(("columns", "lanes"), [(8, 8), (16, 16), (24, 8), (37, 16), (200, 8)])
@pytest.mark.parametrize("kind", [LoopKind.UNROLLED, LoopKind.SERIAL])
def test_transposed(rows: int, columns: int, lanes: int, dtype: str, kind: LoopKind) -> None:
    function = across(rows, columns, lanes, dtype, kind)
    compiled = build(function, TARGET)
    if columns >= lanes_of(function.body.body, TARGET):
        assert "shufflevector" in compiled.llvm
        assert "scatter" not in compiled.llvm
    with edge_array(rows * columns, dtype) as out:
        data = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
        run_compiled(compiled, function, TARGET, data, out.reshape(columns, rows))
        np.testing.assert_array_equal(out.reshape(columns, rows), (data + data).T)


def test_halves_of_vectors_are_transposed_by_themselves() -> None:
    """AVX's instructions work on each half of a vector: 24 transpose 8 x 8 elements, where whole vectors take 48."""
    target = resolve("x86-64-v3")
    compiled = build(across(8, 8, 8, "float32"), target)
    assert len(re.findall(r"vunpck|vperm|vinsert|vshuf|vblend", assembly(compiled, target))) == 24


@pytest.mark.parametrize(
    ("rows", "dtype", "passes"), [(16, "float32", 3), (14, "float32", 3), (9, "float32", 0), (16, "int8", 0)]
)
def test_passes_are_fenced_where_nearly_all_rows_are_there(rows: int, dtype: str, passes: int) -> None:
    """LLVM looks for better shuffles across all of them otherwise, in vain. A fence is no instruction."""
    target = resolve("x86-64-v4")
    compiled = build(across(rows, 16, 16, dtype), target)
    assert compiled.llvm.count("call <16 x float> @llvm.arithmetic.fence") == 16 * passes
    if rows == 16 and passes:
        assert len(re.findall(r"vunpck|vperm|vinsert|vshuf|vblend", assembly(compiled, target))) == 64


def test_what_is_read_where_it_is_stored_keeps_its_order() -> None:
    z = argument("Z", 16, 8)
    rows = loop("i", 8, lambda i: loop("j", 16, lambda j: store(z, (j, i), load(z, j, i) + 1.0), LoopKind.VECTORIZED, 16),
                LoopKind.UNROLLED)  # fmt: skip
    function = Function("f", (z,), 1, rows)
    out = np.arange(128, dtype=np.float32).reshape(16, 8)
    expected = out + 1
    run(function, TARGET, out)
    np.testing.assert_array_equal(out, expected)
