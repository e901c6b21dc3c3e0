"""Policy gradients on measured times (Woodpecker-DL: Liu et al., arXiv 2008.04567): a softmax for each hole, learnt by
REINFORCE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import CostModel
from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows, new
from ansorlite.search.protocol import SearchProblem


@dataclass(frozen=True)
class PolicySettings:
    """
    Attributes:
        rate: how far a gradient is followed.
        entropy: the bonus of keeping all values likely.
        smoothing: how much of the mean reward so far stays in the next: the baseline.
        tries: programs drawn for each that is wanted.
    """

    rate: float = 0.1
    entropy: float = 0.01
    smoothing: float = 0.8
    tries: int = 8


class _Policy:
    """Which values of the holes of a sketch are likely.

    Attributes:
        seen: so many of what was measured has been learnt from.
        baseline: the mean reward so far; ``None`` before any.
    """

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self.logits = [np.zeros(size) for size in sizes.tolist()]
        self.seen = 0
        self.baseline: float | None = None

    def chances(self) -> list[NDArray[np.float64]]:
        shifted = [np.exp(each - each.max()) for each in self.logits]
        return [each / each.sum() for each in shifted]

    def learn(self, rows: Rows, rewards: NDArray[np.float64], settings: PolicySettings) -> None:
        """Follow the gradient of ``(m,)`` rewards of rows, and of the entropy, by ``rate`` a row."""
        for row, reward in zip(rows.tolist(), rewards.tolist(), strict=True):
            self.baseline = reward if self.baseline is None else self.baseline
            advantage = reward - self.baseline
            for logits, chance, value in zip(self.logits, self.chances(), row, strict=True):
                log = np.log(np.maximum(chance, 1e-30))
                gradient = -advantage * chance
                gradient[value] += advantage
                gradient += settings.entropy * -chance * (log - (chance * log).sum())
                logits += settings.rate * gradient
            self.baseline = settings.smoothing * self.baseline + (1 - settings.smoothing) * reward


class PolicySearch(MeasuredSearch):
    """Rows are drawn from the policy; the reward is the logarithm of the speed, a failure's the lowest so far, less 1."""

    def __init__(
        self, problem: SearchProblem, model: CostModel, rng: np.random.Generator, settings: PolicySettings = PolicySettings()
    ) -> None:
        super().__init__(problem, model, rng)
        self._settings = settings
        self._policies = {arm: _Policy(arm.space.sizes) for arm in self._arms}

    def choose(self, arm: Arm, n: int) -> Rows:
        policy = self._policies[arm]
        self._learn(policy, arm)
        count = self._settings.tries * n
        drawn = [self._rng.choice(len(chance), size=count, p=chance) for chance in policy.chances()]
        return new(arm, np.stack(drawn, axis=1)) if drawn else arm.rows[:0]

    def _learn(self, policy: _Policy, arm: Arm) -> None:
        latencies = arm.latencies
        ran = latencies[np.isfinite(latencies)]
        if len(ran):
            rewards = -np.log(np.minimum(latencies, ran.max() * np.e))
            policy.learn(arm.rows[policy.seen :], rewards[policy.seen :], self._settings)
            policy.seen = len(latencies)
