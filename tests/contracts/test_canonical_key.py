"""Contract 2, canonical key: two rows have the same key if and only if they print the same loop nest."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from ansorlite.loops.printer import text
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.target import Target
from ansorlite.te.dag import ComputeDAG
from tests.contracts.cases import (
    Drawn,
    Rows,
    budget,
    computations,
    extremes,
    named,
    named_dag,
    reproducer,
    seeds,
    sketches_of,
    targets,
    times,
)
from tests.targets import WIDE


def near_rows(sketch: Sketch, count: int, rng: np.random.Generator) -> Rows:
    """Distinct rows, many of which mean the same program: random ones, their mutations, neighbours, and extremes."""
    space = TileSpace(sketch)
    sampled = space.sample(count, rng)
    mutated = space.mutate(np.concatenate([sampled, extremes(sketch)]), rng)
    neighbours = space.neighbours(sampled[0])
    few = rng.permutation(len(neighbours))[:count]
    every = [sampled, mutated, space.mutate(mutated, rng), neighbours[few], extremes(sketch)]
    return np.unique(np.concatenate(every), axis=0)


def collisions(dag: ComputeDAG, target: Target, count: int, seed: int) -> int:
    """Checks the contract; how many rows were found to mean a program that another one had meant."""
    rng = np.random.default_rng(seed)
    found = 0
    for sketch in sketches_of(dag, target, rng):
        rows = near_rows(sketch, count, rng)
        keys = [key.tobytes() for key in TileSpace(sketch).canonical(rows)]
        of_key: dict[bytes, int] = {}
        of_text: dict[str, int] = {}
        texts = [text(sketch.lower(row)) for row in rows]
        for number, (key, printed) in enumerate(zip(keys, texts, strict=True)):
            same_key, same_text = of_key.setdefault(key, number), of_text.setdefault(printed, number)
            with reproducer(dag, sketch, rows[number], rows[same_key]):
                assert texts[same_key] == printed, "one key, two programs"
            with reproducer(dag, sketch, rows[number], rows[same_text]):
                assert keys[same_text] == key, "one program, two keys"
        found += len(rows) - len(of_key)
    return found


@named
def test_named_computations(name: str) -> None:
    collisions(named_dag(name), WIDE, times(15), seed=2)


def test_rows_that_mean_one_program_are_met() -> None:
    assert collisions(named_dag("matmul of ones"), WIDE, 25, seed=3) > 5
    assert collisions(named_dag("matmul bias relu"), WIDE, 25, seed=3) > 0


@budget(40)
@given(computations, targets, seeds)
def test_random_computations(drawn: Drawn, target: Target, seed: int) -> None:
    collisions(drawn.dag, target, 6, seed)
