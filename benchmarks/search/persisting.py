"""An explorer that was tried for the default: a population that lives on from one round to the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Set

import numpy as np

from ansorlite.evolution import EvolutionSettings, evolve
from ansorlite.search.explorers import Evolving, Explorer, Rows, Score, Scores
from ansorlite.sketch.space import Space


@dataclasses.dataclass(frozen=True)
class Persisting:
    """Makes explorers that breed as :class:`~ansorlite.search.explorers.Evolving` does, but begin with what the round before
    liked best beside the best measured: over the rounds a search is as deep as all of its generations.

    Attributes:
        evolving: how they breed otherwise.
        kept: so many rows live on, but no more than half of a population.
    """

    evolving: Evolving = dataclasses.field(default_factory=Evolving)
    kept: int = EvolutionSettings.parents

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        settings = self.evolving.evolution
        last = np.zeros((0, len(space.sizes)), np.int64)

        def explore(score: Score, best: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            nonlocal last
            population = max(self.evolving.least_population, round(effort * settings.population))
            seeds = np.concatenate([best[: int(self.evolving.measured * population)], last[: population // 2]])
            rows, scores = evolve(space, score, seeds, dataclasses.replace(settings, population=population), rng, taken)
            last = rows[: self.kept]
            return rows, scores

        return explore
