"""Latencies that are fast enough below a bound: ``f2`` of Ansor's Table 2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite.errors import ArgumentError
from ansorlite.task_scheduler.objectives.goal import Goal


class LatencyBounds:
    """``sum(weight * max(bound, latency))``, in seconds. A model without a bound is never fast enough.

    Raises:
        ArgumentError: no model has a bound.
    """

    def __init__(self, goals: Sequence[Goal]) -> None:
        if all(goal.bound is None for goal in goals):
            raise ArgumentError("objective 'bounds' needs the bound of a model at least; without any, choose objective 'latency'")
        self._weights = np.array([goal.weight for goal in goals], np.float64)
        self._bounds = np.array([0.0 if goal.bound is None else goal.bound for goal in goals])

    def __call__(self, latencies: NDArray[np.float64]) -> float:
        return float(self._weights @ np.maximum(self._bounds, latencies))

    def slopes(self, latencies: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(latencies > self._bounds, self._weights, 0.0)
