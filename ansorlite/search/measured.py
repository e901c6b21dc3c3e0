"""What strategies have in common that ask no cost model, sketch by sketch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import CostModel
from ansorlite.evolution import first_of_each, keys
from ansorlite.search.arm import Arm
from ansorlite.search.bandit import shares
from ansorlite.search.log import RoundLog
from ansorlite.search.observation import Observation
from ansorlite.search.protocol import SearchProblem
from ansorlite.sketch.candidate import Candidate

Rows: TypeAlias = NDArray[np.int64]


class MeasuredSearch(ABC):
    """A :class:`~ansorlite.search.protocol.Strategy` that decides which rows of a sketch are next; all else is done here.

    What was taken, or is not valid, is passed over; what a sketch leaves
    open is drawn at random, so that a strategy with nothing to learn goes on with what is left of the space.
    """

    def __init__(self, problem: SearchProblem, _: CostModel, rng: np.random.Generator) -> None:
        """No model is asked."""
        self._problem = problem
        self._rng = rng
        self._arms = [Arm(each.space) for each in problem.spaces]

    @abstractmethod
    def choose(self, arm: Arm, n: int) -> Rows:
        """Rows of a sketch, the first to be measured first: ``n`` or more, or fewer where it knows no more."""

    def split(self, arms: Sequence[Arm], n: int) -> NDArray[np.int64]:
        """``(arms,)``: how many of a batch of ``n`` each sketch gets; by default by what it has earned."""
        return shares([arm.latencies for arm in arms], n, self._rng)

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
            split = self.split([self._arms[position] for position in alive], n - len(batch))
            for position, share in zip(alive, split.tolist(), strict=True):
                if share:
                    rows = self._rows(position, share)
                    batch += [self._problem.spaces[position].candidate(tuple(row)) for row in rows.tolist()]
        return batch

    def _rows(self, position: int, n: int) -> Rows:
        arm = self._arms[position]
        chosen = new(arm, self.choose(arm, n))[:n]
        arm.take(chosen)
        drawn = arm.fresh(n - len(chosen), self._rng)
        arm.take(drawn)
        return np.concatenate([chosen, drawn])

    def observe(self, results: Sequence[Observation]) -> None:
        for each in results:
            found = self._problem.locate(each.candidate)
            if found is not None:
                position, row = found
                self._arms[position].observe(row, each.latency, each.censored)


def new(arm: Arm, rows: Rows) -> Rows:
    """Those of ``rows`` that are valid and not taken, one a program."""
    rows = rows[arm.space.valid(rows)]
    return rows[first_of_each(keys(arm.space, rows), set(arm.taken))]
