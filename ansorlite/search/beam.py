"""Beam search under a cost model of whole programs (Halide's auto-scheduler: Adams et al., SIGGRAPH 2019, which ProTuner is held
against)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from ansorlite.search.explorers import Explorer, Found, Rows, Score, Scores
from ansorlite.sketch.space import Space


@dataclass(frozen=True)
class Beam:
    """Makes explorers that decide hole by hole, in the order of the space, and keep the best few beginnings.

    A beginning is worth what the best program is worth that it was tried in: what it leaves open is random.

    Attributes:
        width: so many beginnings are kept.
        rollouts: programs of all holes together, all sketches together.
        keep: at most how many rows are handed on.
    """

    width: int = 16
    rollouts: int = 2048
    keep: int = 128

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        def explore(score: Score, _: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            found = Found(space, taken, self.keep)
            order = np.array(space.order, np.int64)
            tried = max(2 * self.width, round(max(effort, 0.1) * self.rollouts / max(1, len(order))))
            kept = np.zeros((1, 0), np.int64)
            for count in range(1, len(order) + 1):
                rows = space.sample(tried, rng)
                rows[:, order[: count - 1]] = kept[np.arange(tried) % len(kept)]
                scores = found.scored(score, rows)
                # Of each beginning its best program counts; the best beginnings first.
                best_first = rows[np.argsort(-scores, kind="stable")][:, order[:count]]
                _, first = np.unique(best_first, axis=0, return_index=True)
                kept = best_first[np.sort(first)[: self.width]]
            if not len(order):
                found.scored(score, space.sample(1, rng))
            return found.rows()

        return explore
