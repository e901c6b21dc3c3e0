"""A genetic algorithm on measured times (AutoTVM's: Chen et al., NeurIPS 2018; apache/tvm v0.14, ``tuner/ga_tuner.py``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.evolution import keys
from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows
from ansorlite.search.protocol import SearchProblem


@dataclass(frozen=True)
class GeneticSettings:
    """As AutoTVM has them.

    Attributes:
        population: programs of a generation, of one sketch.
        elite: the best of all, which are parents in every generation.
        mutation: how likely each hole of a child is re-drawn.
        uniform: whether a child has each hole of either parent, instead of the first holes of one and the rest of the other.
    """

    population: int = 100
    elite: int = 3
    mutation: float = 0.1
    uniform: bool = False


class GeneticSearch(MeasuredSearch):
    """Generation after generation: parents by their speed, one-point crossover, every hole re-drawn now and then.

    The first generation is random. Programs that were measured before are as if they were of the last generation.
    """

    def __init__(
        self,
        problem: SearchProblem,
        model: CostModel,
        rng: np.random.Generator,
        settings: GeneticSettings = GeneticSettings(),
    ) -> None:
        super().__init__(problem, model, rng)
        self._settings = settings
        self._begun = dict.fromkeys(self._arms, 0)
        self._waiting = {arm: arm.rows for arm in self._arms}

    def choose(self, arm: Arm, n: int) -> Rows:
        if len(arm.latencies) < self._settings.population:
            return arm.rows[:0]
        waiting = self._waiting[arm]
        waiting = waiting[[key not in arm.taken for key in keys(arm.space, waiting)]]
        if len(waiting) < n:
            children = self._children(arm, self._begun[arm])
            self._begun[arm] = len(arm.latencies)
            waiting = np.concatenate([waiting, children])
        self._waiting[arm] = waiting
        return waiting

    def _children(self, arm: Arm, begun: int) -> Rows:
        """A generation of the one that was measured since ``begun``, and the elite."""
        settings, rng = self._settings, self._rng
        latencies = arm.latencies
        last = np.arange(len(latencies))[max(0, min(begun, len(latencies) - settings.population)) :]
        elite = np.argsort(latencies, kind="stable")[: settings.elite]
        parents = np.union1d(last, elite)
        speed = 1.0 / latencies[parents]
        chance = speed / speed.sum() if speed.any() else None
        mothers, fathers = (arm.rows[rng.choice(parents, size=settings.population, p=chance)] for _ in range(2))
        holes = len(arm.space.sizes)
        points = rng.integers(holes + 1, size=(settings.population, 1))
        of_mother = rng.random(mothers.shape) < 0.5 if settings.uniform else np.arange(holes) < points
        children = np.where(of_mother, mothers, fathers)
        redrawn = rng.random(children.shape) < settings.mutation
        return np.where(redrawn, rng.integers(arm.space.sizes, size=children.shape), children)


def genes(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> GeneticSearch:
    """Woodpecker-DL's genetic algorithm (Liu et al., arXiv 2008.04567), in a small population, as its programs are few."""
    return GeneticSearch(problem, model, rng, GeneticSettings(population=32, uniform=True))
