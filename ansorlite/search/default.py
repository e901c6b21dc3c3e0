"""The program to use when nothing has been measured: what the draft model likes best after a short search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.evolution import EvolutionSettings, evolve
from ansorlite.features import extract
from ansorlite.features.names import COLUMN
from ansorlite.platforms.table import platform_of
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.task import Task

#: Successive halving (Jamieson and Talwalkar, AISTATS 2016): every sketch is bred for a while, then so many of the best, each
#: from what it has come to.
_FIRST: Final = EvolutionSettings(population=1024, generations=4, keep=128)
_THEN: Final = (
    (4, EvolutionSettings(population=1024, generations=4, keep=128)),
    (2, EvolutionSettings(population=1024, generations=8, keep=1)),
)
#: Takes a program behind all that do not have what speaks against it: scores are logarithms of speeds.
_WORSE: Final = 1e3


@dataclass(frozen=True, eq=False)
class _Bred:
    sketch: Sketch
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]


def default_candidate(task: Task, sketches: Sequence[Sketch]) -> Candidate:
    """A good program of ``task`` at once, always the same one."""
    return default_candidates(task, sketches)[0]


def default_candidates(task: Task, sketches: Sequence[Sketch], *, most_steps: float = math.inf) -> tuple[Candidate, ...]:
    """A few good programs of different sketches, the best first; the loops as written come last.

    Args:
        most_steps: that a statement of theirs writes out, if there are such programs; the features of GPUs do not tell.
    """
    prior = platform_of(task.target).prior(task.target)
    limited = math.isfinite(most_steps) and task.target.gpu is None

    def bred(sketch: Sketch, seeds: NDArray[np.int64], settings: EvolutionSettings) -> _Bred:
        def scored(rows: NDArray[np.int64]) -> NDArray[np.float64]:
            features = extract(sketch, rows)
            scores = prior(features)
            if limited:
                steps = np.exp2(features[:, :, COLUMN["unrolled"]].max(axis=1)) - 1
                scores = scores - np.where(steps > most_steps, _WORSE, 0.0)
            return scores

        return _Bred(sketch, *evolve(TileSpace(sketch), scored, seeds, settings, np.random.default_rng(0)))

    living = [bred(sketch, np.zeros((0, len(sketch.holes)), np.int64), _FIRST) for sketch in sketches]
    for finalists, settings in _THEN:
        living.sort(key=lambda each: -each.scores[0])
        living = [bred(each.sketch, each.rows, settings) for each in living[:finalists]]
    living.sort(key=lambda each: -each.scores[0])
    return (*(each.sketch.candidate(each.rows[0]) for each in living), NAIVE)
