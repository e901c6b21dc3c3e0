"""Contract 3, fast = slow: features of a population equal, row by row, those read off the lowered loop IR."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from ansorlite.features import NAMES, extract
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.peel import peel
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
        rows = some_rows(sketch, count, rng)
        fast = extract(sketch, rows)
        statements = [facts.name for facts in population_facts(sketch.fold(rows[0]))]
        assert fast.shape == (len(rows), len(statements), len(NAMES))
        for features, row in zip(fast, rows, strict=True):
            with reproducer(dag, sketch, row):
                (slow,) = reference(kernel_module(peel(sketch.lower(row))), statements, target)
                wrong = ~np.isclose(features, slow, rtol=0.0, atol=1e-9)
                assert not wrong.any(), "\n".join(
                    f"{statements[s]}: {NAMES[f]} is {features[s, f]} in the population, {slow[s, f]} in the loop IR"
                    for s, f in np.argwhere(wrong)
                )


@named
def test_named_computations(name: str) -> None:
    check(named_dag(name), WIDE, times(12), seed=4)


@budget(50)
@given(computations, targets, seeds)
def test_random_computations(drawn: Drawn, target: Target, seed: int) -> None:
    check(drawn.dag, target, 5, seed)
