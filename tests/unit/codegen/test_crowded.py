"""What no register is left for between the steps of a register tile is loaded again; what it means is the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ansorlite.codegen import assembly, factors
from ansorlite.codegen.crowded import steps_of
from ansorlite.loops.nodes import Buffer, For, Function, LoopKind, Stmt, index
from ansorlite.platforms import build
from ansorlite.target import Target, host, resolve
from ansorlite.te.expr import Var
from tests.running import called
from tests.unit.loops.build import add, argument, load, loop, over_tile, store, summed_tile

#: With 16 and with 32 registers.
FEW, MANY = resolve("x86-64-v3"), resolve("x86-64-v4")
LANES = 8
#: A vector that is stored to the stack, or read from it.
STACK = re.compile(r"ymm\d+, .*\(%[re][sb]p\)|\(%[re][sb]p\), .*%ymm")


def convolution(rows: int, taps: int, columns: int = 2 * LANES, channels: int = 5) -> Function:
    """``c[i, j] = sum over k and t of a[k, i + t] * b[k, t, j]``, in one register tile, with the taps written out."""
    a, b, c = argument("a", channels, rows + taps - 1), argument("b", channels, taps, columns), argument("c", rows, columns)

    def tap(tile: Buffer, k: Var, t: Var) -> Stmt:
        return over_tile(rows, columns, LANES, lambda i, j: add(tile, i, j, load(a, k, i + t) * load(b, k, t, j)))

    def sums(tile: Buffer) -> Stmt:
        return loop("k", channels, lambda k: loop("t", taps, lambda t: tap(tile, k, t), LoopKind.UNROLLED))

    return Function("convolution", (a, b, c), 1, summed_tile(c, LANES, sums))


def broadcasts(rows: int, taps: int, target: Target) -> int:
    """How often the machine code spreads an element over a vector."""
    code = assembly(build(convolution(rows, taps), target), target)
    return len(re.findall(r"vbroadcastss|\{1to\d+\}", code))


def test_steps_share_elements_while_there_are_registers() -> None:
    assert broadcasts(3, 3, FEW) == 5, "6 accumulators, 2 vectors, 2 elements that wait"
    assert broadcasts(6, 3, FEW) == 3 * 6, "12 accumulators, 2 vectors, 5 elements that would wait"
    assert broadcasts(6, 3, MANY) == 8
    assert broadcasts(6, 1, FEW) == 6


def test_nothing_is_kept_on_the_stack() -> None:
    code = assembly(build(convolution(6, 3), FEW), FEW)
    assert not STACK.findall(code)


@pytest.mark.parametrize("taps", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("rows", [8, 10, 13, 14])
def test_sums_stay_in_their_registers(rows: int, taps: int) -> None:
    """A multiply-add that overwrites a spread element leaves the sum in another register, and so does one that waits until the
    next element is spread."""
    code = assembly(build(convolution(rows, taps, LANES), FEW), FEW)
    assert set(re.findall(r"vfmadd(\d+)ps", code)) == {"231"}
    assert not STACK.findall(code)


def test_where_products_and_additions_are_two_instructions_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    old = resolve("x86-64-v2")
    code = assembly(build(convolution(8, 3, 4), old), old)
    monkeypatch.setattr(factors, "overwritten", lambda _: True)
    assert len(code.splitlines()) < len(assembly(build(convolution(8, 3, 4), old), old).splitlines())


@pytest.mark.parametrize("rows", [1, 3, 6, 13])
@pytest.mark.parametrize("taps", [1, 3, 5])
def test_the_sum_is_the_same(rows: int, taps: int) -> None:
    rng = np.random.default_rng(0)
    function = convolution(rows, taps)
    a, b = (rng.integers(-8, 8, param.shape).astype(np.float32) for param in function.params[:2])
    windows = np.lib.stride_tricks.sliding_window_view(a, taps, axis=1)
    expected = np.einsum("kit,ktj->ij", windows, b)
    np.testing.assert_array_equal(called(function, host(threads=1), a, b), expected)


def test_what_updates_no_register_tile_is_no_step() -> None:
    x, y, i = argument("x", 8), argument("y", 8), Var("i")
    assert steps_of(For(i, index(8), LoopKind.UNROLLED, store(y, (i,), load(x, i)))) is None
