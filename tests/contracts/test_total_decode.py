"""Contract 1, total decode: every row of every sketch decodes to a legal program."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from ansorlite.loops.verifier import verify
from ansorlite.target import Target
from ansorlite.te.dag import ComputeDAG
from tests.contracts.cases import (
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
from tests.targets import WIDE


def check(dag: ComputeDAG, target: Target, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for sketch in sketches_of(dag, target, rng):
        for row in some_rows(sketch, count, rng):
            with reproducer(dag, sketch, row):
                verify(sketch.lower(row))


@named
def test_named_computations(name: str) -> None:
    check(named_dag(name), WIDE, times(20), seed=1)


@budget(60)
@given(computations, targets, seeds)
def test_random_computations(drawn: Drawn, target: Target, seed: int) -> None:
    check(drawn.dag, target, 5, seed)
