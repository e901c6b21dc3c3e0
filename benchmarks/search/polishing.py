"""An explorer that was tried for the default: every fourth program that it hands on is a step from the best that was measured."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np

from ansorlite.evolution import best_first, keys
from ansorlite.search.explorers import Evolving, Explorer, ExplorerMaker, Rows, Score, Scores
from ansorlite.sketch.space import Space


@dataclass(frozen=True)
class Polishing:
    """Makes explorers that hand on, among what another one finds, the steps from the fastest program measured that the model
    likes best (Droplet's coordinate descent: apache/tvm PR 17104; there at the end of a search, here all along, as a search does
    not know its end).

    Attributes:
        explorer: makes the other one.
        every: each so manieth of the rows that are handed on is such a step, as long as there are some.
    """

    explorer: ExplorerMaker = field(default_factory=Evolving)
    every: int = 4

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        explorer = self.explorer(space, rng)

        def explore(score: Score, best: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            rows, scores = explorer(score, best, effort, taken)
            near = _steps(space, best[:1], taken)
            if not len(near):
                return rows, scores
            near_scores = np.asarray(score(near), np.float64)
            order = best_first(near_scores)
            near, near_scores = near[order], near_scores[order]
            step_keys = set(keys(space, near))
            other = np.array([key not in step_keys for key in keys(space, rows)], bool)
            rows, scores = rows[other], scores[other]
            place = np.concatenate([_places(len(rows), self.every), self.every * np.arange(1, len(near) + 1) - 1.0])
            merged = np.argsort(place, kind="stable")
            return np.concatenate([rows, near])[merged], np.concatenate([scores, near_scores])[merged]

        return explore


def _places(count: int, every: int) -> Scores:
    """``(count,)``: places of rows in a list where each so manieth place is another's."""
    at = np.arange(count)
    return (at + at // (every - 1)).astype(np.float64)


def _steps(space: Space, best: Rows, taken: Set[bytes]) -> Rows:
    """The programs a step from ``best``, at most one row, that are not taken; each once."""
    if not len(best):
        return best
    near = space.neighbours(best[0])
    near = near[space.valid(near)]
    chosen: dict[bytes, int] = {}
    for at, key in enumerate(keys(space, near)):
        if key not in taken:
            chosen.setdefault(key, at)
    return near[list(chosen.values())]
