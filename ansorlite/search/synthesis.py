"""Chameleon's sample synthesis (Ahn et al., ICLR 2020; anony-sub/chameleon): programs that nobody walked to, put together of
what a cluster of good ones agrees on."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ansorlite import lazy
from ansorlite.cost_model import CostModel
from ansorlite.evolution import best_first
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.explorers import Explorer, ExplorerMaker, Found, Rows, Score, Scores
from ansorlite.search.ppo import PolicyWalk
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import Medoids
from ansorlite.sketch.space import Space

if TYPE_CHECKING:
    from scipy.cluster import vq
else:
    vq = lazy.module("scipy.cluster.vq")


@dataclass(frozen=True)
class Synthesis:
    """Makes explorers that add, to what others find, the program of each cluster that has its members' most frequent values.

    There, a centre's values are those of the two largest knobs, and the others are drawn from all samples, or their mode; here
    all are the mode of the cluster's own members, and what is no program is left out.

    Attributes:
        explorer: makes what finds the programs.
        clusters: how many.
    """

    explorer: ExplorerMaker
    clusters: int = 32

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        inner = self.explorer(space, rng)

        def explore(score: Score, best: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            rows, scores = inner(score, best, effort, taken)
            if len(rows) <= self.clusters or not len(space.sizes):
                return rows, scores
            found = Found(space, taken, len(rows) + self.clusters)
            # What was found is known; only what is put together is scored.
            found.scored(lambda _: scores, rows)
            found.scored(score, self._modes(space, rows, rng))
            rows, scores = found.rows()
            order = best_first(scores)
            return rows[order], scores[order]

        return explore

    def _modes(self, space: Space, rows: Rows, rng: np.random.Generator) -> Rows:
        points = space.embed(rows)
        width = points.std(axis=0)
        _, label = vq.kmeans2(points / np.where(width > 0, width, 1.0), self.clusters, minit="++", seed=rng, missing="warn")
        members = [rows[label == cluster] for cluster in np.unique(label)]
        return np.stack([np.array([np.bincount(column).argmax() for column in each.T], np.int64) for each in members])


def chameleon_synthesis(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Adaptive exploration, and adaptive sampling of what that finds and of what is put together of it."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=Synthesis(PolicyWalk()), selector=Medoids()))
