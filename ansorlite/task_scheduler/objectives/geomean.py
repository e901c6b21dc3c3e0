"""The geometric mean of speed-ups: ``f3`` of Ansor's Table 2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite.task_scheduler.objectives.goal import Goal


class GeomeanLatency:
    """``exp(mean(log(latency / reference)))``: one over the geometric mean of the speed-ups, weighted.

    Ansor lowers the negative of that mean. The minimum is the same, and so is every comparison of two derivatives; this one
    stays positive, so that shares of it mean something. Where a model has no reference, one second stands for it: references
    change the objective by a factor, and no decision.
    """

    def __init__(self, goals: Sequence[Goal]) -> None:
        self._weights = np.array([goal.weight for goal in goals], np.float64)
        self._references = np.array([1.0 if goal.reference is None else goal.reference for goal in goals])

    def __call__(self, latencies: NDArray[np.float64]) -> float:
        runs = latencies > 0
        weights = self._weights[runs]
        if not runs.any():
            return 0.0
        return float(np.exp(weights @ np.log(latencies[runs] / self._references[runs]) / weights.sum()))

    def slopes(self, latencies: NDArray[np.float64]) -> NDArray[np.float64]:
        runs = latencies > 0
        shares = np.where(runs, self._weights, 0.0) / max(self._weights[runs].sum(), np.finfo(np.float64).tiny)
        slopes: NDArray[np.float64] = self(latencies) * shares / np.where(runs, latencies, 1.0)
        return slopes
