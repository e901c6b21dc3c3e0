"""The fold: choices that rule each other out are projected onto the nearest that are legal."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.errors import TuningError
from ansorlite.schedule.canonical import canonical
from ansorlite.schedule.nest import Attached, Nest
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from tests import workloads
from tests.unit.sketch.rows import ROOT, row_of, sketch_with, sketches

FUSED = sketch_with(workloads.matmul_bias_relu(16, 32, 8), "s.reverse_compute_at(E,", without=["s.cache_read("])
SOFTMAX = sketch_with(workloads.softmax(16, 32), "s.compute_at(exp,", without=["s.rfactor("])


def nest_of(sketch: Sketch, row: np.ndarray) -> Nest:
    (nest,) = sketch.fold(row.tolist()).nests
    return nest


def place(sketch: Sketch, row: np.ndarray, stage: str) -> Attached:
    return next(a for a in nest_of(sketch, row).attached if a.tensor.name == stage)


@pytest.mark.parametrize(
    ("k", "wish", "at"),
    [
        ((2, 4), "j2", 2),  # the outer reduction loop runs twice: not before it has ended
        ((1, 8), "j2", 4),  # it runs once
        ((2, 4), "j0", 1),
        ((2, 4), "j1", 2),
    ],
)
def test_an_epilogue_runs_after_the_reduction(k: tuple[int, ...], wish: str, at: int) -> None:
    row = row_of(FUSED, C__i=(2, 2, 2, 2), C__j=(2, 2, 2, 4), C__k=k, C__at=wish)
    assert nest_of(FUSED, row).epilogue_at == at


def test_a_place_inside_of_loops_of_one_iteration_is_the_one_outside_of_them() -> None:
    row = row_of(FUSED, C__i=(2, 1, 2, 4), C__j=(4, 1, 2, 4), C__k=(2, 4), C__at="j1")
    assert nest_of(FUSED, row).epilogue_at == 1


def test_accumulators_start_where_the_reduction_does() -> None:
    tiles = {"C__i": (2, 2, 2, 2), "C__j": (2, 2, 2, 4)}
    assert nest_of(FUSED, row_of(FUSED, C__k=(2, 4), **tiles)).reduce_at == 2
    assert nest_of(FUSED, row_of(FUSED, C__k=(1, 8), **tiles)).reduce_at == 4


@pytest.mark.parametrize(("exp_at", "largest_at", "found"), [(ROOT, "j0", 0), ("j0", "j0", 1), ("j0", ROOT, 0), (ROOT, ROOT, 0)])
def test_a_producer_is_computed_no_further_in_than_its_consumer(exp_at: str, largest_at: str, found: int) -> None:
    row = row_of(SOFTMAX, softmax__i=(4, 4), softmax__j=(4, 8), exp__at=exp_at, largest__at=largest_at, total__at="j0")
    assert place(SOFTMAX, row, "largest").at == found


def test_a_producer_of_two_stages_is_before_the_outer_of_them() -> None:
    row = row_of(SOFTMAX, softmax__i=(4, 4), softmax__j=(4, 8), exp__at="j0", total__at=ROOT)
    assert place(SOFTMAX, row, "exp").at == 0


def test_lanes_are_at_most_the_iterations_of_their_loop() -> None:
    tiles = {"C__i": (2, 2, 2, 2), "C__k": (2, 4)}
    assert nest_of(FUSED, row_of(FUSED, C__j=(2, 2, 2, 4), C__lanes=16, **tiles)).lanes == 4
    assert nest_of(FUSED, row_of(FUSED, C__j=(1, 1, 1, 32), C__lanes=16, **tiles)).lanes == 16
    assert nest_of(FUSED, row_of(FUSED, C__j=(1, 2, 16, 1), C__lanes=16, **tiles)).lanes == 1


def test_parallel_loops_of_one_iteration_do_not_count() -> None:
    def parallel(i: tuple[int, ...], j: tuple[int, ...], wish: int) -> int:
        row = row_of(FUSED, C__i=i, C__j=j, C__k=(2, 4), C__parallel=wish)
        return int(nest_of(FUSED, row).parallel)

    assert parallel((2, 2, 2, 2), (2, 2, 2, 4), 2) == 2
    assert parallel((2, 2, 2, 2), (1, 2, 4, 4), 2) == 1
    assert parallel((1, 2, 2, 4), (2, 2, 2, 4), 2) == 2
    assert parallel((1, 2, 2, 4), (2, 2, 2, 4), 1) == 0


def test_a_stage_inside_of_loops_is_not_parallel() -> None:
    row = row_of(SOFTMAX, softmax__i=(4, 4), softmax__j=(4, 8), total__parallel=1, total__at="j0")
    assert place(SOFTMAX, row, "total").parallel == 0
    row = row_of(SOFTMAX, softmax__i=(4, 4), softmax__j=(4, 8), total__parallel=1, total__at=ROOT)
    assert place(SOFTMAX, row, "total").parallel == 1


@pytest.mark.parametrize(("limit", "unrolled"), [(0, []), (16, ["j3", "i3"]), (64, ["j3", "i3", "k1"])])
def test_straight_line_code_stays_within_its_limit(limit: int, unrolled: list[str]) -> None:
    row = row_of(FUSED, C__i=(2, 2, 2, 2), C__j=(2, 2, 2, 4), C__k=(2, 4), C__unroll=limit)
    found = [loop.name for loop in reversed(nest_of(FUSED, row).loops) if loop.unrolled]
    assert found == unrolled


def test_a_reduction_whose_last_run_is_short_is_not_unrolled() -> None:
    odd = sketch_with(workloads.matmul_bias_relu(16, 32, 7), "s.reverse_compute_at(E,", without=["s.cache_read("])
    row = row_of(odd, C__i=(2, 2, 2, 2), C__j=(2, 2, 2, 4), C__k=(2, 4), C__unroll=512)
    assert not any(loop.unrolled for loop in nest_of(odd, row).loops if loop.reduce)


def test_a_region_is_as_long_as_the_tile_that_reads_it() -> None:
    row = row_of(SOFTMAX, softmax__i=(4, 4), softmax__j=(4, 8), exp__at="j0", total__at="j0", largest__at="j0")
    assert list(place(SOFTMAX, row, "exp").lengths) == [4, 32]
    assert list(place(SOFTMAX, row, "largest").lengths) == [4]


@pytest.mark.parametrize(
    "sketch",
    [*sketches(workloads.conv2d_bias_relu(1, 4, 7, 9, 6)), *sketches(workloads.sum_of_squares(509)), SOFTMAX],
    ids=lambda sketch: sketch.signature,
)
def test_a_population_is_its_programs_one_by_one(sketch: Sketch) -> None:
    rows = TileSpace(sketch).sample(40, np.random.default_rng(0))
    together = sketch.canonical(rows)
    alone = [canonical(sketch.fold(row)) for row in rows]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("wrong", ["short", "negative", "large"])
def test_rows_that_do_not_fit_are_refused(wrong: str) -> None:
    row = [0] * len(FUSED.holes)
    row = {"short": row[1:], "negative": [-1, *row[1:]], "large": [FUSED.holes[0].size, *row[1:]]}[wrong]
    with pytest.raises(TuningError, match="does not fit"):
        FUSED.lower(row)
