"""Felix's descent: follow the gradient of a differentiable model of speed, and round where it leads to a program (Zhao et al.,
ASPLOS 2024).

Felix differentiates its cost model through formulas of the features. Here any cost model will do: a small network learns its
scores as a function of the coordinates of rows (log2 of what tiles span), and that is what is followed.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from ansorlite.cost_model import CostModel, neural
from ansorlite.evolution import best_first, first_of_each, keys
from ansorlite.search.coordinates import coordinates, nearest
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.explorers import Explorer, Rows, Score, Scores
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import Spread
from ansorlite.sketch.space import Space


@dataclass(frozen=True)
class Gradient:
    """Makes explorers that follow gradients.

    Attributes:
        starts: from so many rows, the best scored ones and the best measured ones.
        steps, rate: of Adam, from each.
        every: each such step's point becomes a program.
        sampled: the network learns from so many random rows, besides those measured.
        epochs: of its training.
    """

    starts: int = 16
    steps: int = 128
    rate: float = 0.5
    every: int = 8
    sampled: int = 512
    epochs: int = 40

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        def explore(score: Score, best: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            rows = np.concatenate([best, space.sample(max(4 * self.starts, round(effort * self.sampled)), rng)])
            rows, scores = _scored(space, score, rows, set())
            if len(space.sizes) and len(scores) and np.ptp(scores) > 0:
                points = space.embed(rows)
                surrogate = neural.Surrogate(rng, self.epochs)
                surrogate.fit(points, scores)
                way = surrogate.ascend(points[best_first(scores)[: self.starts]], self.steps, self.rate)[:: self.every]
                met = nearest(coordinates(space, rows[0]), way.reshape(-1, points.shape[1]))
                rows = np.concatenate([rows, met])
            rows, scores = _scored(space, score, rows, taken)
            order = best_first(scores)
            return rows[order], scores[order]

        return explore


def _scored(space: Space, score: Score, rows: Rows, taken: Set[bytes]) -> tuple[Rows, Scores]:
    """The valid rows, one a program, that are not taken; and what they score."""
    rows = rows[space.valid(rows)]
    rows = rows[first_of_each(keys(space, rows), set(taken))]
    return rows, score(rows) if len(rows) else np.zeros(0)


def gradient(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Today's search, with Felix's descent in the place of evolution."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=Gradient(), selector=Spread(2)))
