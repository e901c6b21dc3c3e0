"""Stores past the caches: right wherever an array begins, seen by other threads, and only whole vectors."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.codegen import assembly
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import For, Function, LoopKind, Store, index
from ansorlite.loops.printer import text
from ansorlite.loops.simplify import simplify
from ansorlite.platforms import build
from ansorlite.target import host, resolve
from ansorlite.te.expr import Var
from tests.running import run_compiled
from tests.unit.codegen.test_memory import edge_array
from tests.unit.loops.build import argument, load

TARGET = host(threads=2)


def doubled(rows: int, columns: int, dtype: str, kind: LoopKind = LoopKind.SERIAL) -> Function:
    """``Z[i, j] = X[i, j] + X[i, j]``, a vector of ``j`` at a time, past the caches."""
    x, z = argument("X", rows, columns, dtype=dtype), argument("Z", rows, columns, dtype=dtype)
    i, j = Var("i"), Var("j")
    store = Store(z, (i, j), load(x, i, j) + load(x, i, j), "Z", streamed=True)
    inner = For(j, index(columns), LoopKind.VECTORIZED, store, TARGET.lanes(dtype))
    return Function("f", (x, z), 1, For(i, index(rows), kind, inner))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16"])
@pytest.mark.parametrize("columns", [1, 7, 32, 65, 131])
def test_every_element_and_nothing_else(dtype: str, columns: int) -> None:
    function = doubled(3, columns, dtype)
    data = (np.arange(3 * columns) % 50).reshape(3, columns).astype(dtype)
    expected = np.zeros_like(data)
    interpret(function, [data, expected])
    with edge_array(3 * columns, dtype) as out:
        run_compiled(build(function, TARGET), function, TARGET, data, out.reshape(3, columns))
        np.testing.assert_array_equal(out.reshape(3, columns), expected)


@pytest.mark.parametrize("offset", range(0, 68, 4))
def test_wherever_the_output_begins(offset: int) -> None:
    function = doubled(2, 96, "float32")
    memory = np.full(2 * 96 * 4 + 192, 7, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    out = memory[begin : begin + 2 * 96 * 4].view(np.float32).reshape(2, 96)
    data = np.arange(192, dtype=np.float32).reshape(2, 96)
    run_compiled(build(function, TARGET), function, TARGET, data, out)
    np.testing.assert_array_equal(out, 2 * data)
    assert (memory[:begin] == 7).all()
    assert (memory[begin + out.nbytes :] == 7).all()


def test_threads_together() -> None:
    function = doubled(257, 1024, "float32", LoopKind.PARALLEL)
    compiled, data = build(function, TARGET), np.arange(257 * 1024, dtype=np.float32).reshape(257, 1024)
    for _ in range(20):
        out = np.zeros_like(data)
        run_compiled(compiled, function, TARGET, data, out)
        np.testing.assert_array_equal(out, 2 * data)


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
def test_a_fence_ends_what_streams(kind: LoopKind) -> None:
    """Each function of the machine code that has such stores ends with a fence, before what tells that it is done."""
    target = resolve("x86-64-v3")
    functions = assembly(build(doubled(64, 1024, "float32", kind), target), target).split("\tretq")
    streaming = [part for part in functions if "vmovntps" in part]
    assert len(streaming) == 1
    assert all(part.rindex("sfence") > part.rindex("vmovntps") for part in streaming)
    assert sum("sfence" in part for part in functions) == 1


def test_other_machines_store_as_usual() -> None:
    target = resolve("aarch64")
    assert "nontemporal" not in build(doubled(8, 64, "float32"), target).llvm


def test_people_see_it_and_passes_keep_it() -> None:
    assert "# Z, streamed" in text(simplify(doubled(8, 64, "float32")))
