"""Random search: the baseline that every strategy must beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.arm import Arm
from ansorlite.search.log import RoundLog
from ansorlite.search.protocol import SearchProblem
from ansorlite.sketch.candidate import Candidate


class RandomSearch:
    """A :class:`~ansorlite.search.protocol.Strategy` that draws a sketch, then a program of it, each at random."""

    def __init__(self, problem: SearchProblem, rng: np.random.Generator) -> None:
        self._problem = problem
        self._arms = [Arm(each.space) for each in problem.spaces]
        self._rng = rng

    @property
    def rounds(self) -> tuple[RoundLog, ...]:
        """None: it expects nothing of what it proposes."""
        return ()

    def propose(self, n: int) -> list[Candidate]:
        batch: list[Candidate] = []
        # A pass that falls short leaves at least one sketch spent, or on its last programs.
        for _ in range(2 * len(self._arms) + 1):
            alive = [position for position, arm in enumerate(self._arms) if not arm.spent]
            if len(batch) >= n or not alive:
                break
            drawn = np.bincount(self._rng.choice(alive, size=n - len(batch)), minlength=len(self._arms))
            for position in np.flatnonzero(drawn).tolist():
                arm = self._arms[position]
                rows = arm.fresh(int(drawn[position]), self._rng)
                arm.take(rows)
                batch.extend(self._problem.spaces[position].candidate(tuple(row)) for row in rows.tolist())
        return batch

    def observe(self, results: Sequence[tuple[Candidate, float | None]]) -> None:
        for candidate, latency in results:
            found = self._problem.locate(candidate)
            if found is not None:
                position, row = found
                self._arms[position].observe(row, latency)


def random_search(problem: SearchProblem, _: CostModel, rng: np.random.Generator) -> RandomSearch:
    """A :class:`RandomSearch`, made as every strategy is; it asks no model."""
    return RandomSearch(problem, rng)
