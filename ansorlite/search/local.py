"""Searches that walk from program to neighbouring program, on measured times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows, new
from ansorlite.search.protocol import SearchProblem


class Descent(MeasuredSearch):
    """Coordinate descent (Droplet: the descent at the end of DPAnsor, apache/tvm PR 17104).

    All that is one step away from the best, in the order of the holes; from a better one that is found there the same again; at
    its end from the next best. There, a step is taken again, twice as far, while its outcome is awaited, and a gain must pass a
    t-test at 0.05; here, a batch goes on with the neighbours of the next best, and the measurer sees to it that a gain is one.
    """

    def choose(self, arm: Arm, n: int) -> Rows:
        found = [arm.rows[:0]]
        count = 0
        for row in arm.best(len(arm.latencies)):
            near = new(arm, arm.space.neighbours(row))
            found.append(near)
            count += len(near)
            if count >= 2 * n:
                break
        return np.concatenate(found)


@dataclass(frozen=True)
class LocalSettings:
    """
    Attributes:
        parents: so many of the best are walked from.
        moves: the most holes that a step changes at once.
        tries: steps tried for each program that is wanted.
    """

    parents: int = 8
    moves: int = 2
    tries: int = 8


class LocalSearch(MeasuredSearch):
    """Random steps from the few best programs, the better ones more often: an evolution strategy on measured times.

    Its first batch is random.
    """

    def __init__(
        self, problem: SearchProblem, model: CostModel, rng: np.random.Generator, settings: LocalSettings = LocalSettings()
    ) -> None:
        super().__init__(problem, model, rng)
        self._settings = settings

    def choose(self, arm: Arm, n: int) -> Rows:
        settings, rng = self._settings, self._rng
        best = arm.best(settings.parents)
        if not len(best):
            return best
        chance = 1.0 / np.arange(1, len(best) + 1)
        rows = best[rng.choice(len(best), size=settings.tries * n, p=chance / chance.sum())]
        moves = rng.integers(1, settings.moves + 1, size=len(rows))
        for move in range(settings.moves):
            moving = moves > move
            rows[moving] = arm.space.mutate(rows[moving], rng)
        return rows


@dataclass(frozen=True)
class AnnealingSettings:
    """
    Attributes:
        start: the temperature: by so much, as a share, may a program be slower that is taken with chance 1/e.
        cooling: what the temperature is multiplied with after every program.
        tries: steps tried for each program that is wanted.
    """

    start: float = 0.5
    cooling: float = 0.97
    tries: int = 8


class SimulatedAnnealing(MeasuredSearch):
    """Simulated annealing on measured times (Kirkpatrick et al., Science 1983), a chain a sketch.

    A batch is steps from where the chain is; its outcomes are taken one after another, a slower one by chance.
    """

    def __init__(
        self,
        problem: SearchProblem,
        model: CostModel,
        rng: np.random.Generator,
        settings: AnnealingSettings = AnnealingSettings(),
    ) -> None:
        super().__init__(problem, model, rng)
        self._settings = settings
        self._seen = dict.fromkeys(self._arms, 0)
        self._at: dict[Arm, int | None] = dict.fromkeys(self._arms)

    def choose(self, arm: Arm, n: int) -> Rows:
        at = self._walk(arm)
        if at is None:
            return arm.rows[:0]
        return arm.space.mutate(np.repeat(arm.rows[[at]], self._settings.tries * n, axis=0), self._rng)

    def _walk(self, arm: Arm) -> int | None:
        """Where the chain is after all that was measured; ``None`` before anything ran."""
        settings, latencies = self._settings, arm.latencies
        at = self._at[arm]
        for trial in range(self._seen[arm], len(latencies)):
            if not np.isfinite(latencies[trial]):
                continue
            worse = 0.0 if at is None else np.log(latencies[trial] / latencies[at])
            temperature = settings.start * settings.cooling**trial
            if worse <= 0 or self._rng.random() < np.exp(-worse / temperature):
                at = trial
        self._seen[arm], self._at[arm] = len(latencies), at
        return at
