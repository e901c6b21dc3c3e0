"""Peeled functions mean the same, and run whole vectors but for the last."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from ansorlite import te
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, LoopKind, Scope, Stmt, block, index, statements
from ansorlite.loops.peel import peel
from ansorlite.loops.printer import text
from ansorlite.loops.verifier import verify
from ansorlite.te.expr import Const, Var
from ansorlite.te.functions import minimum

from .build import argument, load, loop, store, tiled_matmul
from .strategies import arguments, functions


def ragged(extent: int, outer: int, inner: int) -> Function:
    """A copy of ``extent`` elements in tiles of ``outer`` tiles of ``inner``, the last ones cut."""
    a, b = argument("a", extent), argument("b", extent)
    i, j, k = Var("i"), Var("j"), Var("k")
    tiles = te.minimum(outer, (index(extent) - i * (outer * inner) + (inner - 1)) // inner)
    start = i * (outer * inner) + j * inner
    lanes = te.minimum(inner, index(extent) - start)
    copy = For(k, lanes, LoopKind.VECTORIZED, store(b, (start + k,), load(a, start + k) * 2.0), 4)
    count = -(-extent // (outer * inner))
    body = For(i, index(count), LoopKind.SERIAL, For(j, tiles, LoopKind.SERIAL, copy))
    return Function("copy", (a, b), 1, body)


def vector_extents(function: Function) -> list[int | None]:
    loops = [s for s in statements(function.body) if isinstance(s, For) and s.kind is LoopKind.VECTORIZED]
    return [int(loop.extent.value) if isinstance(loop.extent, Const) else None for loop in loops]


def test_the_last_tile_stands_apart() -> None:
    assert vector_extents(ragged(37, 4, 8)) == [None]
    peeled = peel(ragged(37, 1, 8))
    assert vector_extents(peeled) == [8, 5]
    verify(peeled)
    assert (
        text(peeled)
        == """\
def copy(a: float32[37]) -> b: float32[37]:
    for i in 0..4:
        vectorized(4) k in 0..8:
            b[i * 8 + k] = a[i * 8 + k] * 2.0
    vectorized(4) k_1 in 0..5:
        b[k_1 + 32] = a[k_1 + 32] * 2.0"""
    )


def test_what_is_never_cut_stays_as_it_is() -> None:
    whole = tiled_matmul(4, 12, 3, 4)
    assert peel(whole) is whole


@pytest.mark.parametrize(("extent", "outer", "inner"), [(37, 1, 8), (37, 2, 8), (100, 3, 7), (65, 4, 16), (9, 2, 8), (33, 2, 16)])
def test_peeled_loops_compute_the_same(extent: int, outer: int, inner: int) -> None:
    function = ragged(extent, outer, inner)
    peeled = peel(function)
    assert None not in vector_extents(peeled)
    verify(peeled)
    x = np.arange(extent, dtype=np.float32)
    plain, apart = np.zeros_like(x), np.zeros_like(x)
    interpret(function, [x, plain])
    interpret(peeled, [x, apart])
    np.testing.assert_array_equal(plain, 2 * x)
    np.testing.assert_array_equal(apart, 2 * x)


def test_the_part_that_stands_apart_has_temporaries_of_its_own() -> None:
    x, y, t = argument("X", 37), argument("Y", 37), Buffer("T", (8,), "float32", Scope.REGISTER)

    def tile(k: Var) -> Stmt:
        extent = minimum(index(8), index(37) - k * 8)
        fill = loop("i", extent, lambda i: store(t, (i,), load(x, k * 8 + i) * 2.0), LoopKind.VECTORIZED, 8)
        use = loop("j", extent, lambda j: store(y, (k * 8 + j,), load(t, j)), LoopKind.VECTORIZED, 8)
        return Alloc(t, block(fill, use))

    function = Function("tiles", (x, y), 1, loop("k", 5, tile))
    peeled = peel(function)
    assert [each.buffer.name for each in statements(peeled.body) if isinstance(each, Alloc)] == ["T", "T"]
    verify(peeled)
    array, found = np.arange(37, dtype=np.float32), np.zeros(37, np.float32)
    interpret(peeled, [array, found])
    np.testing.assert_array_equal(found, 2 * array)


@given(functions())
@settings(max_examples=30, deadline=None)
def test_any_function_computes_the_same(function: Function) -> None:
    arrays = arguments(function, np.random.default_rng(0))
    apart = [array.copy() for array in arrays]
    interpret(function, arrays)
    interpret(peel(function), apart)
    for a, b in zip(arrays, apart, strict=True):
        np.testing.assert_array_equal(a, b)
