"""Copies across the rows of their source take vectors of each row, and copy the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from ansorlite import te
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, LoopKind, Scope, block, statements
from ansorlite.loops.transposing import transposing
from ansorlite.platforms import build
from ansorlite.target import host
from tests.running import called

from .build import argument, load, loop, store
from .copying import assert_copies, blocks_of_rows
from .strategies import assert_legal_and_the_same, functions

TARGET = host(threads=1)
LANES = TARGET.lanes("float32")


def taps(filters: int, channels: int, window: int, block_channels: int) -> Function:
    """The weights of a convolution, copied with filters side by side, blocks of channels at a time, and back."""
    w, out = argument("w", filters, channels, window), argument("out", filters, channels, window)
    packed = Buffer("packed", (block_channels, window, filters), "float32", Scope.LOCAL)

    def of(first: te.Expr) -> Alloc:
        left = te.minimum(block_channels, channels - first * block_channels)
        copy = loop(
            "c",
            left,
            lambda c: loop(
                "x",
                window,
                lambda x: loop(
                    "f",
                    filters,
                    lambda f: store(packed, (c, x, f), load(w, f, first * block_channels + c, x)),
                    LoopKind.VECTORIZED,
                    LANES,
                ),
                LoopKind.UNROLLED,
            ),
        )
        back = loop(
            "f",
            filters,
            lambda f: loop(
                "c",
                left,
                lambda c: loop("x", window, lambda x: store(out, (f, first * block_channels + c, x), load(packed, c, x, f))),
            ),
        )
        return Alloc(packed, block(copy, back))

    return Function("taps", (w, out), 1, loop("first", -(-channels // block_channels), of))


def transposes(function: Function) -> bool:
    """Whether neighbouring rows are unrolled around vectors of each."""
    return any(
        isinstance(stmt, For)
        and stmt.kind is LoopKind.UNROLLED
        and isinstance(stmt.body, For)
        and stmt.body.kind is LoopKind.VECTORIZED
        for stmt in statements(function.body)
    )


@pytest.mark.parametrize("function", [
    blocks_of_rows(12, 2 * LANES, 6, 2 * LANES, across=True),
    blocks_of_rows(2 * LANES + 8, 4 * LANES + 6, LANES + 4, 2 * LANES + 3, across=True),
    taps(LANES, 4 * LANES, 3, LANES),
    taps(LANES + 5, LANES + 3, 9, LANES // 2 + 1),
], ids=["whole", "moved inwards", "taps", "the last block is shorter"])  # fmt: skip
def test_the_copy_is_the_same(function: Function) -> None:
    fresh = transposing(function, TARGET)
    assert transposes(fresh)
    assert_copies(function)
    assert_copies(fresh)
    values = np.random.default_rng(2).standard_normal(function.params[0].shape).astype(np.float32)
    np.testing.assert_array_equal(called(function, TARGET, values), values)


def test_vectors_are_stored_whole() -> None:
    source = build(taps(LANES, 4 * LANES, 3, LANES), TARGET).llvm
    assert "shufflevector" in source
    assert "insertelement" not in source


@pytest.mark.parametrize("function", [
    blocks_of_rows(12, LANES - 1, 6, LANES - 1, across=True),
    blocks_of_rows(12, 2 * LANES, 6, 2 * LANES),
    taps(LANES, 1, 3, 1),
], ids=["a row is shorter than a vector", "along the rows", "a run is shorter than a vector"])  # fmt: skip
def test_other_copies_are_left_alone(function: Function) -> None:
    assert transposing(function, TARGET) is function


@given(functions())
@settings(max_examples=50, deadline=None)
def test_any_function_stays_legal_and_means_the_same(function: Function) -> None:
    assert_legal_and_the_same(transposing(function, TARGET), function)
