"""Every task in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ansorlite.task_scheduler.curve import Curve
from ansorlite.task_scheduler.protocol import Share, TaskInfo


class RoundRobin:
    """A :class:`~ansorlite.task_scheduler.protocol.TaskScheduler` that gives all tasks alive equally many shares."""

    def __init__(self, tasks: Sequence[TaskInfo]) -> None:
        self._curves = [Curve() for _ in tasks]

    def next(self) -> Share | None:
        alive = [position for position, curve in enumerate(self._curves) if curve.alive]
        if not alive:
            return None
        task = min(alive, key=lambda position: self._curves[position].shares)
        self._curves[task].handed_out = True
        return Share(task)

    def expected_gain(self) -> float:
        """Nothing is forecast."""
        return math.inf if any(curve.alive for curve in self._curves) else 0.0

    def update(self, task: int, latency: float | None, trials: int, seconds: float = 0.0) -> None:
        self._curves[task].update(latency, trials, seconds)
