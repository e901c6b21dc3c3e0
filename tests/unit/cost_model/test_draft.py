"""What the draft prefers, where the reason is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorlite.cost_model.draft import Cycles, Draft
from ansorlite.features import extract
from ansorlite.search.default import default_candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.te.tensor import Tensor
from tests import workloads
from tests.targets import WIDE
from tests.unit.sketch.rows import Choice, row_of, sketch_with

Choices = dict[str, Choice]

TILES: Choices = {"C__i": (8, 4, 2, 8), "C__j": (4, 4, 1, 32), "C__k": (4, 128)}
CHOICES: Choices = {"C__lanes": 16, "C__unroll": 512, "C__parallel": 0, "C__at": "j1"}


def seconds(sketch: Sketch, row: np.ndarray) -> float:
    return float(Draft(WIDE).seconds(extract(sketch, row[None]))[0])


def matmul(**choices: Choice) -> float:
    sketch = sketch_with(workloads.matmul_bias_relu(512, 512, 512), "s.reverse_compute_at(E,", without=["s.cache_read("])
    return seconds(sketch, row_of(sketch, **(TILES | CHOICES | choices)))


def test_vectors_are_faster_than_scalars() -> None:
    assert matmul() < 0.5 * matmul(C__lanes=1)


def test_accumulators_that_do_not_fit_into_registers_are_slow() -> None:
    assert matmul(C__i=(4, 4, 2, 16), C__j=(4, 2, 1, 64)) > 1.5 * matmul()


def test_one_accumulator_waits_for_itself() -> None:
    assert matmul(C__i=(8, 8, 8, 1), C__j=(4, 8, 1, 16)) > 1.5 * matmul()


def test_a_tile_that_stays_in_registers_is_not_moved_through_memory() -> None:
    """Of a whole reduction, taken by its epilogue right behind it, or when more of the tile has been computed."""
    sketch = sketch_with(workloads.matmul_bias_relu(512, 512, 512), "s.reverse_compute_at(E,", without=["s.cache_read("])
    tiles: Choices = {**TILES, **CHOICES, "C__i": (8, 4, 4, 4), "C__k": (1, 512)}

    def cycles(at: str) -> Cycles:
        return Draft(WIDE).cycles(extract(sketch, row_of(sketch, **(tiles | {"C__at": at}))[None]))

    taken, moved = cycles("j2"), cycles("j1")
    assert taken.moves.sum() == 0 < moved.moves.sum()
    assert taken.loads.sum() < moved.loads.sum()


def test_threads_that_share_the_work_are_worth_a_parallel_loop() -> None:
    assert matmul(C__parallel=1) < 0.7 * matmul()


def test_a_row_times_a_matrix_reads_long_runs() -> None:
    sketch = sketch_with(workloads.matmul(1, 1000, 2048), "s.cache_write(", without=["s.cache_read("])
    choices: Choices = {"C_local__unroll": 64, "C_local__parallel": 0, "C_local__at": "j1", "C_local__k": (64, 32)}
    wide = row_of(sketch, C_local__j=(20, 1, 1, 50), C_local__lanes=16, **choices)
    narrow = row_of(sketch, C_local__j=(125, 1, 1, 8), C_local__lanes=8, **choices)
    assert seconds(sketch, wide) < 0.7 * seconds(sketch, narrow)


@pytest.mark.parametrize(
    ("tensors", "parallel"), [(workloads.transpose_add(16, 16), False), (workloads.transpose_add(1024, 1024), True)]
)
def test_only_what_is_large_enough_runs_in_parallel(tensors: list[Tensor], parallel: bool) -> None:
    task = Task(tensors, replace(WIDE, threads=2))
    program = sketch_of(task, default_candidate(task, derive(task))).fold(())
    assert any(int(nest.parallel) > 0 for nest in program.nests) == parallel
