"""Classify, do not regress: likelihood-free Bayesian optimisation by trees (Song et al., ICML 2022; pytorch/helion's
``LFBOTreeSearch``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ansorlite import lazy
from ansorlite.cost_model import CostModel
from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows, new
from ansorlite.search.protocol import SearchProblem

if TYPE_CHECKING:
    import lightgbm
else:
    lightgbm = lazy.module("lightgbm")


@dataclass(frozen=True)
class TreeSettings:
    """
    Attributes:
        first: random programs before anything is classified.
        good: the share of the programs, the fastest, that count as good.
        trees: of the classifier.
        moves: programs around each of the best that are looked at.
        parents: so many of the best are moved from.
        radius: the most steps of a move.
        alike: how much a program is worth less that falls into the leaves of one chosen before it.
    """

    first: int = 16
    good: float = 0.1
    trees: int = 100
    moves: int = 200
    parents: int = 5
    radius: int = 2
    alike: float = 1.0


_PARAMETERS: Final[dict[str, Any]] = {
    "objective": "binary",
    "boosting": "rf",
    "bagging_fraction": 0.632,
    "bagging_freq": 1,
    "feature_fraction": 0.7,
    "num_leaves": 16,
    "min_data_in_leaf": 1,
    "min_data_in_bin": 1,
    "min_sum_hessian_in_leaf": 1e-6,
    "deterministic": True,
    "force_col_wise": True,
    "num_threads": 1,
    "verbose": -1,
}


class ClassifyingSearch(MeasuredSearch):
    """A forest tells the fastest tenth from the rest by their knobs; failures are of the rest.

    A good program weighs as much as it is faster than the slowest good one, which makes the classifier's score an expected
    improvement. A batch is chosen one after another: by the score, less how many leaves a program shares with those chosen, in
    the mean. There, moves follow the paths of a random tree; here they are random steps of the space.
    """

    def __init__(
        self, problem: SearchProblem, model: CostModel, rng: np.random.Generator, settings: TreeSettings = TreeSettings()
    ) -> None:
        super().__init__(problem, model, rng)
        self._settings = settings

    def choose(self, arm: Arm, n: int) -> Rows:
        if len(arm.latencies) < self._settings.first or len(np.unique(arm.latencies)) < 2:
            return arm.rows[:0]
        pool = self._moved(arm)
        if not len(pool):
            return pool
        forest = self._forest(arm)
        points = arm.space.embed(pool)
        score = np.asarray(forest.predict(points))
        leaves = np.asarray(forest.predict(points, pred_leaf=True)).reshape(len(pool), -1)
        return pool[self._diverse(score, leaves, min(n, len(pool)))]

    def _moved(self, arm: Arm) -> Rows:
        """New programs near the best, and a tenth as many anywhere."""
        settings, rng = self._settings, self._rng
        best = arm.best(settings.parents)
        rows = np.repeat(best, settings.moves, axis=0)
        steps = rng.integers(1, settings.radius + 1, size=len(rows))
        for step in range(settings.radius):
            rows[steps > step] = arm.space.mutate(rows[steps > step], rng)
        anywhere = arm.space.sample(max(settings.moves, len(rows) // 10), rng)
        return new(arm, np.concatenate([rows, anywhere]))

    def _forest(self, arm: Arm) -> lightgbm.Booster:
        latencies = arm.latencies
        bound = np.quantile(latencies, self._settings.good, method="inverted_cdf")
        ran = latencies[np.isfinite(latencies)]
        bound = min(bound, np.sort(ran)[min(1, len(ran) - 1)]) if not np.isfinite(bound) else bound
        good = latencies <= bound
        margin = np.log(bound / np.minimum(latencies, bound))
        # All good ones together weigh as much as the rest.
        weight = np.where(good, margin + 0.1, 1.0)
        weight[good] *= max((~good).sum(), 1) / weight[good].sum()
        parameters = {**_PARAMETERS, "seed": int(self._rng.integers(2**31))}
        data = lightgbm.Dataset(arm.space.embed(arm.rows), good.astype(np.float64), weight=weight, params=parameters)
        return lightgbm.train(parameters, data, num_boost_round=self._settings.trees)

    def _diverse(self, score: NDArray[np.float64], leaves: NDArray[np.int64], n: int) -> list[int]:
        chosen: list[int] = []
        shared = np.zeros(len(score))
        for count in range(n):
            worth = score - self._settings.alike * (shared / count if count else 0.0)
            worth[chosen] = -np.inf
            best = int(worth.argmax())
            chosen.append(best)
            shared += (leaves == leaves[best]).mean(axis=1)
        return chosen
