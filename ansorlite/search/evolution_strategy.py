"""CMA-ES over the holes of a sketch: the evolution strategy of Tuna (Wang et al., arXiv 2104.14641). Needs the extra
``search``."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ansorlite import lazy
from ansorlite.cost_model import CostModel
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.exploration import Fixed
from ansorlite.search.explorers import Explorer, Found, Rows, Score, Scores
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import top
from ansorlite.sketch.space import Space

if TYPE_CHECKING:
    import cmaes
else:
    cmaes = lazy.module("cmaes")


@dataclass(frozen=True)
class EvolutionStrategy:
    """Makes explorers that adapt a normal distribution of whole numbers, the values of the holes, to where scores are high.

    It starts at the best that was measured, or in the middle. A hole counts from 0 to 1, whatever its size.

    Attributes:
        population: of a generation.
        evaluations: of all sketches together.
        deviation: at first, as a share of a hole's range.
        keep: at most how many rows are handed on.
    """

    population: int = 32
    evaluations: int = 1024
    deviation: float = 0.3
    keep: int = 128

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        """
        Raises:
            ArgumentError: cmaes is not installed.
        """
        lazy.need("CMA-ES", "cmaes", "search")

        def explore(score: Score, best: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            found = Found(space, taken, self.keep)
            found.scored(score, space.sample(self.population, rng))
            wide = np.flatnonzero(space.sizes > 1)
            if len(wide) < 2:  # no distribution to adapt
                return found.rows()
            last = (space.sizes[wide] - 1).astype(np.float64)
            start = best[0, wide] / last if len(best) else np.full(len(wide), 0.5)
            bounds = np.stack([np.zeros(len(wide)), np.ones(len(wide))], axis=1)
            strategy = cmaes.CMAwM(
                mean=start,
                sigma=self.deviation,
                bounds=bounds,
                steps=1.0 / last,
                seed=int(rng.integers(2**31)),
                population_size=self.population,
            )
            rows = np.repeat(best[:1] if len(best) else space.sample(1, rng), self.population, axis=0)
            for _ in range(max(1, round(max(effort, 0.1) * self.evaluations / self.population))):
                asked = [strategy.ask() for _ in range(self.population)]
                values = np.stack([value for value, _ in asked])
                rows[:, wide] = np.clip(np.rint(values * last), 0, last).astype(np.int64)
                scores = found.scored(score, rows)
                # What is not valid is worse than all that is.
                lost = np.where(scores > -np.inf, -scores, 1e30)
                strategy.tell([(raw, float(loss)) for (_, raw), loss in zip(asked, lost, strict=True)])
                if strategy.should_stop():
                    break
            return found.rows()

        return explore


def tuna(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Tuna's evolution strategy; nothing at random."""
    settings = EvolutionarySettings(explorer=EvolutionStrategy(), selector=top, exploration=Fixed(0.0))
    return EvolutionarySearch(problem, model, rng, settings)
