"""Contract 5, replay: the printed trace of a program makes the same program again, without rules and tables; and it is found
again among the rows of its sketch.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from ansorlite.loops.printer import text
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.program import sketch_of
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from tests.contracts.cases import (
    NAMED,
    Drawn,
    budget,
    computations,
    named,
    named_dag,
    reproducer,
    seeds,
    sketches_of,
    some_rows,
    targets,
    times,
)
from tests.targets import NARROW, WIDE

#: So many programs of each computation and target: some 10,000 in all.
_PROGRAMS = 10_000 // (2 * len(NAMED)) + 1


def check(dag: ComputeDAG, target: Target, count: int | None, seed: int) -> None:
    """Checks ``count`` rows of each sketch, and what these have in common; without a count as many as make enough programs."""
    rng = np.random.default_rng(seed)
    task = Task(dag, target)
    sketches = sketches_of(dag, target, rng)
    for sketch in sketches:
        with reproducer(dag, sketch):
            again = read(task.dag, sketch.text).trace
            assert str(again) == sketch.text
            assert [(hole.name, hole.size) for hole in again.holes] == [(hole.name, hole.size) for hole in sketch.holes]
        rows = some_rows(sketch, times(-(-_PROGRAMS // len(sketches))) if count is None else count, rng)
        for row, key in zip(rows, sketch.canonical(rows), strict=True):
            with reproducer(dag, sketch, row):
                candidate = sketch.candidate(row)
                replayed = sketch_of(task, candidate)
                assert replayed.text == candidate.trace
                assert text(replayed.lower(())) == text(sketch.lower(row))
                if count is not None:
                    np.testing.assert_array_equal(replayed.canonical(np.zeros((1, 0), np.int64))[0], key)
                found = sketch.row_of(candidate)
                assert found is not None
                np.testing.assert_array_equal(sketch.canonical(np.array([found]))[0], key)


@named
@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["wide", "narrow"])
def test_named_computations(name: str, target: Target) -> None:
    check(named_dag(name), target, None, seed=5)


@budget(40)
@given(computations, targets, seeds)
def test_random_computations(drawn: Drawn, target: Target, seed: int) -> None:
    check(drawn.dag, target, 2, seed)
