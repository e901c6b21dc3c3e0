"""Evolutionary search under a learned cost model, over all sketches of a task (Ansor, OSDI 2020, section 5).

A round: the model is fitted to everything measured; the sketches share the batch by what they have earned; each breeds a
population under the model, or has another explorer look for what the model likes, and of the best unseen programs a selector
chooses; a small share of the batch is drawn at random, so that the model also learns of what it does not like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite import visible
from ansorlite.cost_model import CostModel, Group
from ansorlite.cost_model.protocol import predicted
from ansorlite.cost_model.uncertain import Uncertain
from ansorlite.cost_model.views import seen, view_of
from ansorlite.errors import ArgumentError
from ansorlite.evolution import best_first, epsilon_greedy, keys
from ansorlite.search.acquisition import Acquisition
from ansorlite.search.arm import Arm
from ansorlite.search.bandit import shares
from ansorlite.search.exploration import Exploration, Fixed
from ansorlite.search.explorers import Evolving, ExplorerMaker
from ansorlite.search.log import RoundLog
from ansorlite.search.observation import Observation
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.round import Round
from ansorlite.search.selectors import Pool, Selector, Spread
from ansorlite.sketch.candidate import Candidate

logger = visible.logger(__name__)


@dataclass(frozen=True)
class EvolutionarySettings:
    """The knobs of the search.

    Attributes:
        explorer: makes what looks for programs that the model likes, one a sketch.
        selector: which of those are proposed.
        exploration: the share of a batch that is drawn at random.
        acquisition: what the explorer looks for instead of a high score, from what the model expects and how sure it is; it takes
            a model that says so (:class:`~ansorlite.cost_model.uncertain.Uncertain`).
        drafts: whether the explorer looks for what the prior of the problem likes, and the model verifies what that finds; where
            there is no prior, the model does both.
    """

    explorer: ExplorerMaker = field(default_factory=Evolving)
    selector: Selector = field(default_factory=lambda: Spread(3))
    exploration: Exploration = field(default_factory=lambda: Fixed(0.05))
    acquisition: Acquisition | None = None
    drafts: bool = False


#: Programs at random that tell how sure the model is, as in AdaTune.
_ASKED: Final = 20


class EvolutionarySearch:
    """A :class:`~ansorlite.search.protocol.Strategy`."""

    def __init__(
        self,
        problem: SearchProblem,
        model: CostModel,
        rng: np.random.Generator,
        settings: EvolutionarySettings = EvolutionarySettings(),
    ) -> None:
        """
        Raises:
            ArgumentError: the settings ask how sure the model is, and it does not say.
        """
        if settings.acquisition is not None and not isinstance(model, Uncertain):
            raise ArgumentError(
                f"this search asks how sure its cost model is, which {type(model).__name__} does not say; take "
                "cost_model='bagged' or 'forest'"
            )
        self._problem = problem
        self._model = model
        self._rng = rng
        self._settings = settings
        self._arms = [Arm(each.space) for each in problem.spaces]
        self._explorers = [settings.explorer(each.space, rng) for each in problem.spaces]
        self._rounds: list[Round] = []
        self._stale = True
        self._best = np.inf

    @property
    def rounds(self) -> tuple[RoundLog, ...]:
        """What each round proposed, expected and found."""
        return tuple(each.log() for each in self._rounds)

    def groups(self) -> list[Group]:
        """Everything measured so far, as a cost model takes it: one group a sketch."""
        return [
            Group(self._seen(position, arm.rows), arm.latencies, censored=arm.censored)
            for position, arm in enumerate(self._arms)
            if len(arm.latencies)
        ]

    def propose(self, n: int) -> list[Candidate]:
        started = perf_counter()
        this = Round(len(self._rounds), len(self._arms), best=self._best)
        this.trained_on = self._fit()
        fitted = perf_counter()
        batch: list[Candidate] = []
        # What a sketch cannot fill is left to the others; a pass that falls short leaves one spent or on its last programs.
        for _ in range(2 * len(self._arms) + 1):
            alive = [position for position, arm in enumerate(self._arms) if not arm.spent]
            if len(batch) >= n or not alive:
                break
            batch += self._pass(n - len(batch), alive, this)
        this.fit_seconds = fitted - started
        this.search_seconds = perf_counter() - fitted
        if batch:
            self._rounds.append(this)
        return batch

    def observe(self, results: Sequence[Observation]) -> None:
        for each in results:
            found = self._problem.locate(each.candidate)
            if found is None:
                continue
            position, row = found
            key = position, self._arms[position].observe(row, each.latency, each.censored)
            seconds = np.inf if each.latency is None else each.latency
            self._best = min(self._best, seconds)
            self._stale = True
            for proposal in self._rounds:
                if key in proposal.predicted:
                    proposal.measured[key] = min(seconds, proposal.measured.get(key, np.inf))
                    proposal.best = self._best
        for proposal in self._rounds:
            if proposal.complete and not proposal.reported:
                proposal.reported = True
                _report(proposal.log())

    def _fit(self) -> int:
        groups = self.groups()
        if self._stale:
            self._model.fit(groups)
            self._stale = False
        return sum(len(group.latencies) for group in groups)

    def _pass(self, n: int, alive: list[int], this: Round) -> list[Candidate]:
        """At most ``n`` candidates of the sketches ``alive``."""
        share = self._settings.exploration(self.rounds, self._doubt)
        greedy, explored = epsilon_greedy(n, n, share)
        ranked = shares([self._arms[position].latencies for position in alive], greedy, self._rng)
        at_random = np.bincount(self._rng.integers(len(alive), size=explored), minlength=len(alive))
        batch: list[Candidate] = []
        for position, best, fresh in zip(alive, ranked.tolist(), at_random.tolist(), strict=True):
            arm = self._arms[position]
            chosen = self._breed(position, best, best / greedy, this) if best else arm.rows[:0]
            arm.take(chosen)
            # What breeding leaves open, too, is drawn at random: it says little when all scores are equal.
            drawn = arm.fresh(best - len(chosen) + fresh, self._rng)
            arm.take(drawn)
            this.explored += len(drawn)
            batch += self._propose(position, np.concatenate([chosen, drawn]), this)
        return batch

    def _breed(self, position: int, n: int, share: float, this: Round) -> NDArray[np.int64]:
        """The ``n`` best rows that are found; none if the model has no preference."""
        arm, space, prior = self._arms[position], self._problem.spaces[position], self._problem.prior
        best = self._best_score() if self._settings.acquisition is not None else 0.0

        def score(rows: NDArray[np.int64]) -> NDArray[np.float64]:
            this.scored += len(rows)
            return self._worth(self._seen(position, rows), best)

        def draft(rows: NDArray[np.int64]) -> NDArray[np.float64]:
            assert prior is not None
            return prior(space.programs(rows).features)

        drafting = self._settings.drafts and prior is not None
        measured = arm.best(len(arm.latencies))
        rows, scores = self._explorers[position](draft if drafting else score, measured, share, arm.taken)
        if drafting and len(rows):
            verified = score(rows)
            order = best_first(verified)
            rows, scores = rows[order], verified[order]
        if not len(scores) or np.ptp(scores) == 0:
            return rows[:0]
        pool = Pool(rows, scores, space.programs(rows), lambda: self._deviations(position, rows))
        return rows[self._settings.selector(pool, n, self._rng)]

    def _worth(self, programs: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """``(n,)``: what measuring each program is worth, ``best`` being the best score of a measured one, if one has run.

        Args:
            programs: what the model looks at of them.
        """
        acquisition = self._settings.acquisition
        if acquisition is None or not np.isfinite(best) or not isinstance(self._model, Uncertain):
            return predicted(self._model, programs)
        return acquisition(*self._model.estimate(programs), best)

    def _deviations(self, position: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(n,)``: how unsure the model is; zeros where it does not say."""
        return self._model.estimate(self._seen(position, rows))[1] if isinstance(self._model, Uncertain) else np.zeros(len(rows))

    def _best_score(self) -> float:
        """The highest that the model says of the fastest program of a sketch; -inf before one has run."""
        found = [
            predicted(self._model, self._seen(position, arm.best(1)))
            for position, arm in enumerate(self._arms)
            if len(arm.best(1))
        ]
        return float(max((each[0] for each in found), default=-np.inf))

    def _doubt(self) -> float:
        """See :data:`~ansorlite.search.exploration.Doubt`."""
        best = self._best_score()
        if best <= 0:
            return np.inf
        drawn = [space.space.sample(_ASKED, self._rng) for space in self._problem.spaces]
        return float(np.mean([self._deviations(position, rows) for position, rows in enumerate(drawn)])) / best

    def _seen(self, position: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """What the model looks at of the programs of ``rows``."""
        return seen(view_of(self._model), self._problem.spaces[position].programs(rows))

    def _propose(self, position: int, rows: NDArray[np.int64], this: Round) -> list[Candidate]:
        if not len(rows):
            return []
        scores = predicted(self._model, self._seen(position, rows))
        for key, score in zip(keys(self._arms[position].space, rows), scores.tolist(), strict=True):
            this.predicted[position, key] = score
        return [self._problem.spaces[position].candidate(tuple(row)) for row in rows.tolist()]


def _report(log: RoundLog) -> None:
    logger.info(
        "round %d: %d candidates of %d scored, %d failed, rank correlation %.2f, best %.6g s",
        log.round,
        log.proposed,
        log.scored,
        log.failed,
        log.rank_correlation,
        log.best,
    )
