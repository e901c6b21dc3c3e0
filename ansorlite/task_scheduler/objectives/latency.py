"""The total latency: ``f1`` of Ansor's Table 2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite.task_scheduler.objectives.goal import Goal


class TotalLatency:
    """``sum(weight * latency)``, in seconds."""

    def __init__(self, goals: Sequence[Goal]) -> None:
        self._weights = np.array([goal.weight for goal in goals], np.float64)

    def __call__(self, latencies: NDArray[np.float64]) -> float:
        return float(self._weights @ latencies)

    def slopes(self, latencies: NDArray[np.float64]) -> NDArray[np.float64]:
        del latencies
        return self._weights
