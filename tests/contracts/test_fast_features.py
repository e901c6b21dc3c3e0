"""Contract 3, fast = slow: features of a population equal, row by row, those read off the lowered loop IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pytest
from hypothesis import given

from ansorlite import te
from ansorlite.analysis.no_ops import needed
from ansorlite.features import NAMES, NUM_FEATURES, extract
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.platforms import finished
from ansorlite.schedule.nest import Nest
from ansorlite.target import Target
from ansorlite.te.dag import ComputeDAG
from tests import workloads
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
from tests.targets import NARROW, WIDE

LARGER: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    "matmul": lambda: workloads.matmul(64, 96, 48),
    "transpose add": lambda: workloads.transpose_add(96, 72),
    "convolution": lambda: workloads.conv2d_bias_relu(1, 8, 14, 14, 16, 3, 1, 1, 1, 1),
    "batch matmul": lambda: workloads.batch_matmul(2, 32, 48, 32),
}


#: What counts steps that run. Where tiles are shifted over each other, rows at an end may be left out in two of them, which is
#: counted once (``features/no_ops.py``).
STEPS: Final = [
    number
    for number, name in enumerate(NAMES)
    if name in ("iterations", "reduce", "cheap", "mul", "div", "math", "convert", "dot") or "intensity" in name or "reuse" in name
]

#: What a thread touches is a share of all of it where the outermost parallel loop moves it. Where the last boxes of a stage are
#: shifted inwards, an outer loop that moves none but these is not known to move what the stage reads of them.
SHARE: Final = [NAMES.index("thread_bytes"), NAMES.index("constant_bytes")]


def overlapping(nest: Nest) -> bool:
    """Whether tiles are shifted over each other on an axis of a condition that leaves out steps."""
    axes = {axis for form in needed(nest.anchor) for axis, _ in form.terms}
    return any(loop.axis in axes and loop.trip * loop.step > loop.span for loop in nest.loops)


def check(dag: ComputeDAG, target: Target, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for sketch in sketches_of(dag, target, rng):
        rows = some_rows(sketch, count, rng)
        fast = extract(sketch, rows)
        statements = [facts.name for facts in population_facts(sketch.fold(rows[0]))]
        assert fast.shape == (len(rows), len(statements), NUM_FEATURES)
        for features, row in zip(fast, rows, strict=True):
            with reproducer(dag, sketch, row):
                (slow,) = reference(finished(sketch.lower(row), target), statements, target)
                wrong = ~np.isclose(features, slow, rtol=0.0, atol=1e-9)
                nests = {each.anchor.name: each for root in sketch.fold(row).nests for each in root.all}
                shifted = [s for s, name in enumerate(statements) if name in nests and overlapping(nests[name])]
                near = np.ix_(shifted, STEPS)
                wrong[near] = ~np.isclose(features[near], slow[near], rtol=0.0, atol=0.5)
                boxes = np.ix_([name not in nests for name in statements], SHARE)
                wrong[boxes] = ~np.isclose(features[boxes], slow[boxes], rtol=0.0, atol=np.log2(target.threads) + 1e-9)
                assert not wrong.any(), "\n".join(
                    f"{statements[s]}: {NAMES[f]} is {features[s, f]} in the population, {slow[s, f]} in the loop IR"
                    for s, f in np.argwhere(wrong)
                )


@named
def test_named_computations(name: str) -> None:
    check(named_dag(name), WIDE, times(12), seed=4)


@pytest.mark.parametrize("name", LARGER)
def test_beyond_the_first_cache(name: str) -> None:
    """Where copies take whole vectors and cache lines, and what loops that are fused touch does not fit."""
    for target in (WIDE, NARROW):
        check(ComputeDAG.of(LARGER[name]()), target, times(8), seed=5)


@budget(50)
@given(computations, targets, seeds)
def test_random_computations(drawn: Drawn, target: Target, seed: int) -> None:
    check(drawn.dag, target, 5, seed)
