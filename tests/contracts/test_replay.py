"""Contract 5, replay: the printed trace of a program makes the same program again, without rules and tables, with the same
features; and it is found again among the rows of its sketch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from ansorlite import te
from ansorlite.features import NAMES, extract
from ansorlite.loops.printer import text
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from tests import workloads
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
_PROGRAMS: Final = 10_000 // (2 * len(NAMED)) + 1

#: What they touch fits into no cache, or lies on more pages than a core remembers.
LARGE: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    "softmax": lambda: workloads.softmax(331, 1009),
    "batch matmul": lambda: workloads.batch_matmul(12, 128, 128, 64),
    "convolution": lambda: workloads.conv2d_bias_relu(1, 64, 56, 56, 64, 3, 1, 1, 1, 1),
    "depthwise": lambda: workloads.depthwise(),
    "transpose add": lambda: workloads.transpose_add(509, 1024),
    "layer norm": lambda: workloads.layer_norm(),
}


#: The row of what has no holes.
_ONLY: Final = np.zeros((1, 0), np.int64)


def check_features(sketch: Sketch, row: NDArray[np.int64], replayed: Sketch) -> None:
    """However a program is said, its features are the same."""
    (ours,), (theirs,) = extract(sketch, row[None]), extract(replayed, _ONLY)
    wrong = ~np.isclose(ours, theirs, rtol=0.0, atol=1e-9)
    assert not wrong.any(), {NAMES[feature]: (ours[n, feature], theirs[n, feature]) for n, feature in np.argwhere(wrong)}


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
                    np.testing.assert_array_equal(replayed.canonical(_ONLY)[0], key)
                    check_features(sketch, row, replayed)
                found = sketch.row_of(candidate)
                assert found is not None
                np.testing.assert_array_equal(sketch.canonical(np.array([found]))[0], key)


@named
@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["wide", "narrow"])
def test_named_computations(name: str, target: Target) -> None:
    check(named_dag(name), target, None, seed=5)


@pytest.mark.parametrize("name", LARGE)
def test_features_beyond_the_caches(name: str) -> None:
    rng = np.random.default_rng(6)
    for target in (WIDE, NARROW):
        task = Task(LARGE[name](), target)
        for sketch in sketches_of(task.dag, target, rng)[:2]:
            for row in some_rows(sketch, times(4), rng):
                with reproducer(task.dag, sketch, row):
                    check_features(sketch, row, sketch_of(task, sketch.candidate(row)))


@budget(40)
@given(computations, targets, seeds)
def test_random_computations(drawn: Drawn, target: Target, seed: int) -> None:
    check(drawn.dag, target, 2, seed)
