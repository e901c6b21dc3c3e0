"""What the threads of a warp touch, of one program and of many."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ansorlite.columns.program import ColumnProgram
from ansorlite.columns.tape import Number, Tape
from ansorlite.columns.warp import Digit, Layout, touched
from ansorlite.machine.gpu import BANKS
from ansorlite.machine.matrix import WARP

_TABLES = (
    (1, 2, 3, 4, 8, 16), (1, 2, 4, 5), (8, 12, 1e9), (4, 8, 16, 64, 100, 4096), (1, 2, 4, 8, 7), (1, 3, 8), (1e9, 20), (0, 1, 2),
    (0, 4, 1), (5, 32, 20, 128), (4, 8, 16), (1, 2, 4, 8), (1, 2), (64, 128, 132, 144, 512),
)  # fmt: skip


def _touched(n: list[Number]) -> tuple[Number, Number]:
    digits = [Digit(n[0], n[1], n[2], 0, 0, 1), Digit(n[4], n[5], n[6], n[3], n[7], n[8])]
    return touched(digits, [], n[9], n[10], BANKS / n[10], Layout(n[13], 4, n[11], n[12], 4))


def test_a_population_has_what_each_of_its_programs_has() -> None:
    rng, count = np.random.default_rng(0), 300
    tables = [rng.choice(values, count) for values in _TABLES]
    tape = Tape()
    columns = _touched([tape.gather(hole, table) for hole, table in enumerate(tables)])
    rows = np.repeat(np.arange(count)[:, None], len(tables), axis=1)
    found = ColumnProgram(tape, columns).run(rows)
    plain = [_touched([float(table[row]) for table in tables]) for row in range(count)]
    np.testing.assert_array_equal(found.T, plain)


@pytest.mark.parametrize(
    ("apart", "piece", "pieces", "passes"),
    [
        (4, 4, 32, 1),  # words side by side
        (8, 4, 32, 2),
        (128, 4, 32, 32),
        (132, 4, 32, 1),  # a word of padding
        (0, 4, 1, 1),  # all read one
        (16, 16, 32, 4),  # 8 threads fill the banks
        (32, 16, 32, 8),
        (8, 8, 32, 2),
    ],
)
def test_strides_of_words(apart: int, piece: int, pieces: int, passes: int) -> None:
    group = BANKS // piece
    assert touched([Digit(WARP, 1, math.inf, apart)], [], WARP, piece, group) == (min(pieces * (WARP // group), pieces), passes)


def test_a_swizzle_frees_columns_of_conflicts() -> None:
    down = [Digit(WARP, 1, math.inf, 0, 1, 0)]
    assert touched(down, [], WARP, 16, 8, Layout(128, 4, 1, 1, 4)) == (WARP, WARP)
    assert touched(down, [], WARP, 16, 8, Layout(128, 4, 8, 1, 4)) == (WARP, 4)


def test_threads_that_are_not_there_touch_nothing_and_shifted_ones_what_others_do() -> None:
    assert touched([Digit(20, 1, math.inf, 32)], [], 20, 32, WARP)[0] == 20
    assert touched([Digit(WARP, 1, 9, 32)], [], WARP, 32, WARP)[0] == 10
    besides = [(32 * (thread % 4), 0, 0) for thread in range(WARP)]
    assert touched([Digit(WARP, 1, math.inf, 0)], besides, WARP, 32, WARP)[0] == 4
