"""Data with a border are copied by plain loads and stores but at the border: loops are unswitched, and cut into three parts."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.loops.nodes import Function, LoopKind, Stmt
from ansorlite.platforms import build
from ansorlite.target import host
from ansorlite.te.expr import Expr, Var, const, select
from tests.running import called, run
from tests.targets import WIDE
from tests.unit.loops.build import argument, load, loop, store

ZERO = const(0.0, "float32")
#: Of a vector of :data:`WIDE`.
LANES = WIDE.lanes("float32")


def inside(at: Expr, extent: int) -> Expr:
    return te.all(at >= 0, at < extent)


def rows_with_border(shape: tuple[int, int], first: tuple[int, int], out: tuple[int, int], tile: int = 0) -> Function:
    """``y[i, j] = x[i - first[0], j - first[1]]``, or 0 where x has no such element; columns are in vectors.

    Args:
        tile: columns of a tile, of which there are as many as ``out`` has; 0: all columns are one.
    """
    x, y = argument("x", *shape), argument("y", *out)

    def element(i: Var, j: Expr) -> Stmt:
        at = (i - first[0], j - first[1])
        both = te.all(inside(at[0], shape[0]), inside(at[1], shape[1]))
        return store(y, (i, j), select(both, load(x, *at), ZERO))

    def columns(i: Var, begin: Expr | int, extent: int) -> Stmt:
        return loop("j", extent, lambda j: element(i, j + begin), LoopKind.VECTORIZED, 8)

    def row(i: Var) -> Stmt:
        return loop("t", out[1] // tile, lambda t: columns(i, t * tile, tile)) if tile else columns(i, 0, out[1])

    return Function("border", (x, y), 1, loop("i", out[0], row))


def expected(x: np.ndarray, first: tuple[int, int], out: tuple[int, int]) -> np.ndarray:
    y = np.zeros(out, np.float32)
    for i in range(out[0]):
        for j in range(out[1]):
            at = i - first[0], j - first[1]
            if 0 <= at[0] < x.shape[0] and 0 <= at[1] < x.shape[1]:
                y[i, j] = x[at]
    return y


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


ROWS, COLUMNS, BEFORE, AFTER = (st.integers(1, most) for most in (6, 120, 9, 140))


@given(ROWS, COLUMNS, st.integers(-3, 4), st.integers(-20, 20), ROWS, AFTER)
@settings(max_examples=60, deadline=None)
def test_every_element_is_the_one(rows: int, columns: int, top: int, left: int, height: int, width: int) -> None:
    x, first, out = data(rows, columns), (top, left), (height, width)
    found = called(rows_with_border((rows, columns), first, out), host(threads=1), x)
    np.testing.assert_array_equal(found, expected(x, first, out))


@given(ROWS, st.integers(1, 5), st.sampled_from([8, 40, 48, 66]), st.integers(-9, 9), BEFORE)
@settings(max_examples=30, deadline=None)
def test_tiles_that_meet_the_border_or_do_not(rows: int, tiles: int, tile: int, left: int, fewer: int) -> None:
    x, out = data(rows, max(tiles * tile - fewer, 1)), (rows + 2, tiles * tile)
    found = called(rows_with_border(x.shape, (1, left), out, tile), host(threads=1), x)
    np.testing.assert_array_equal(found, expected(x, (1, left), out))


def vectors(code: str, instruction: str) -> int:
    return len(re.findall(rf"{instruction} <\d+ x float>", code))


def test_what_is_inside_asks_nothing() -> None:
    """A mask is left to the first vector of a row, and to the last; rows beyond the border have none at all."""
    code = str(build(rows_with_border((10, 112), (1, 1), (12, 114)), WIDE).llvm)
    assert len(re.findall(r"call .*llvm\.masked\.load", code)) == 2
    assert vectors(code, "= load") == 1
    assert len(re.findall(r"\.i = phi i64 \[ 8, ", code)) == 1, "from the second vector of eight on"


def test_tiles_share_what_is_inside_for_all() -> None:
    """Whichever tile it is, columns 8 to 40 of 48 are inside."""
    code = str(build(rows_with_border((10, 188), (1, 2), (12, 192), tile=48), WIDE).llvm)
    assert vectors(code, "= load") == 1
    assert len(re.findall(r"call .*llvm\.masked\.load", code)) == 2


def channels_last(rows: int, columns: int) -> Function:
    """``x`` with an element of border on each side; vectors hold channels."""
    x, y = argument("x", rows, columns, LANES), argument("y", rows + 2, columns + 2, LANES)

    def element(i: Var, j: Var, c: Var) -> Stmt:
        both = te.all(inside(i - 1, rows), inside(j - 1, columns))
        return store(y, (i, j, c), select(both, load(x, i - 1, j - 1, c), ZERO))

    def pixel(i: Var, j: Var) -> Stmt:
        return loop("c", LANES, lambda c: element(i, j, c), LoopKind.VECTORIZED, LANES)

    return Function("border", (x, y), 1, loop("i", rows + 2, lambda i: loop("j", columns + 2, lambda j: pixel(i, j))))


def test_loops_around_vectors_have_a_steady_state_too() -> None:
    code = str(build(channels_last(10, 12), WIDE).llvm)
    assert "masked.load" not in code
    assert len(re.findall(r"\.i = phi i64 \[ 1, ", code)) == 1, "the loop over the columns inside"
    assert len(re.findall(r"icmp s.. i64 %t", code)) == 2, "whether a row has data is asked once a row"
    x = data(10, 12, LANES)
    found = called(channels_last(10, 12), host(threads=1), x)
    np.testing.assert_array_equal(found, np.pad(x, ((1, 1), (1, 1), (0, 0))))


def joined(rows: tuple[int, ...], columns: int) -> Function:
    """Arrays one below the other."""
    parts = [argument(f"x{n}", height, columns) for n, height in enumerate(rows)]
    y, begins = argument("y", sum(rows), columns), np.cumsum([0, *rows]).tolist()

    def element(i: Var, j: Var) -> Stmt:
        value: Expr = load(parts[-1], i - begins[len(parts) - 1], j)
        for number in reversed(range(len(parts) - 1)):
            value = select(i < begins[number + 1], load(parts[number], i - begins[number], j), value)
        return store(y, (i, j), value)

    rows_of = loop("i", sum(rows), lambda i: loop("j", columns, lambda j: element(i, j), LoopKind.VECTORIZED, 8))
    return Function("joined", (*parts, y), 1, rows_of)


def test_a_row_of_joined_arrays_is_of_one_of_them() -> None:
    function = joined((3, 1, 4), 100)
    assert "masked.load" not in re.sub("declare.*", "", str(build(joined((3, 1, 4), 96), WIDE).llvm))
    parts = [data(height, 100) + height for height in (3, 1, 4)]
    np.testing.assert_array_equal(called(function, host(threads=1), *parts), np.concatenate(parts))


def test_what_is_loaded_is_asked_each_time() -> None:
    """A condition that is made of data, which another iteration may have stored."""
    x, y = argument("x", 64), argument("y", 64)

    def element(j: Var) -> Stmt:
        return store(y, (j,), select(load(y, 0) > ZERO, load(x, j), load(x, 63 - j)))

    function = Function("f", (x, y), 1, loop("k", 3, lambda _: loop("j", 64, element)))
    values, found, expected = data(64), np.zeros(64, np.float32), np.zeros(64, np.float32)
    for _ in range(3):
        for j in range(64):
            expected[j] = values[j] if expected[0] > 0 else values[63 - j]
    run(function, host(threads=1), values, found)
    np.testing.assert_array_equal(found, expected)
