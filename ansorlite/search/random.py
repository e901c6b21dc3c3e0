"""Random search: the baseline that every strategy must beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorlite.search.arm import Arm
from ansorlite.search.log import RoundLog
from ansorlite.search.protocol import SearchProblem
from ansorlite.sketch.candidate import Candidate


class RandomSearch:
    """A :class:`~ansorlite.search.protocol.Strategy` that draws a sketch, then a program of it, each at random."""

    def __init__(self, problem: SearchProblem, rng: np.random.Generator) -> None:
        self._signatures = problem.signatures
        self._position = {signature: position for position, signature in enumerate(problem.signatures)}
        self._arms = [Arm(space) for space in problem.spaces]
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
                batch.extend(Candidate(self._signatures[position], tuple(row)) for row in rows.tolist())
        return batch

    def observe(self, results: Sequence[tuple[Candidate, float | None]]) -> None:
        for candidate, latency in results:
            position = self._position.get(candidate.sketch)
            if position is not None:
                self._arms[position].observe(candidate.row, latency)
