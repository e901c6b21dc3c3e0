"""Ansor's task scheduler (OSDI 2020, section 6): the next share goes where it is expected to lower the total most.

For a task with best latency ``g`` after ``t`` shares, the expected change by one more is a mean of what the last shares
gave, and of an optimistic guess of what is to come: the lower of ``g - g / t`` and of the latency at which the task
would be as good as ``1 / beta`` of the best similar task::

    alpha * (g(t) - g(t - window)) / window  +  (1 - alpha) * (min(g - g / t, beta * flops / best flops per s) - g)

Two things differ from TVM's: derivatives of the objective are taken with a step relative to the latency, not one of 0.1 ms
that is longer than most kernels; and a task of which nothing runs is given up instead of being tried for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansorlite.task_scheduler.curve import Curve
from ansorlite.task_scheduler.protocol import TaskInfo


@dataclass(frozen=True)
class GradientSettings:
    """The constants of the formula.

    Attributes:
        alpha: the weight of what the last shares gave, against the guess.
        beta: how far below the best similar task a task is trusted to come.
        window: how many shares back the last shares go.
        patience: a task that got more than so many shares more than the fastest similar one, and is still slower than ``beta``
            allows, is not similar after all.
        step: by which share of itself a latency is changed to differentiate the objective.
    """

    alpha: float = 0.2
    beta: float = 2.0
    window: int = 3
    patience: int = 5
    step: float = 1e-3


class GradientScheduler:
    """A :class:`~ansorlite.task_scheduler.protocol.TaskScheduler`. First one share for each task, then by gradient."""

    def __init__(
        self,
        tasks: Sequence[TaskInfo],
        settings: GradientSettings = GradientSettings(),
        objective: Callable[[NDArray[np.float64]], float] | None = None,
    ) -> None:
        """``objective`` of the latencies of all tasks, lower is better; by default their sum by weight.

        It is asked of tasks that run; the latency of others is given as 0.
        """
        self._settings = settings
        self._flops = [task.flops for task in tasks]
        self._tags = [task.tag for task in tasks]
        self._curves = [Curve() for _ in tasks]
        weights = np.asarray([task.weight for task in tasks], np.float64)
        self._objective = objective if objective is not None else lambda latencies: float(weights @ latencies)

    def next(self) -> int | None:
        alive = [position for position, curve in enumerate(self._curves) if curve.alive]
        if not alive:
            return None
        untried = [position for position in alive if not self._curves[position].shares]
        task = untried[0] if untried else min(alive, key=self._urgency)
        self._curves[task].handed_out = True
        return task

    def update(self, task: int, latency: float | None, trials: int) -> None:
        self._curves[task].update(latency, trials)
        if self._is_not_similar(task):
            self._tags[task] = None

    def gradient(self, task: int) -> float:
        """The expected change of the objective by one more share for ``task``; 0 or less."""
        curve, settings = self._curves[task], self._settings
        after, now = curve.after, curve.best
        past = (now - after[-1 - settings.window]) / settings.window if curve.shares > settings.window else 0.0
        hoped = now - now / curve.shares
        best = self._best_speed(task)
        if best and self._flops[task]:
            hoped = min(hoped, settings.beta * self._flops[task] / best)
        return self._slope(task) * (settings.alpha * past + (1 - settings.alpha) * (hoped - now))

    def _urgency(self, task: int) -> tuple[float, int]:
        """The lowest comes first: the steepest gradient, and among equal ones who had least."""
        return self.gradient(task), self._curves[task].shares

    def _slope(self, task: int) -> float:
        """The derivative of the objective by the latency of ``task``."""
        latencies = np.asarray([curve.best if np.isfinite(curve.best) else 0.0 for curve in self._curves])
        lower = latencies.copy()
        lower[task] *= 1 - self._settings.step
        return (self._objective(latencies) - self._objective(lower)) / float(latencies[task] - lower[task])

    def _similar(self, task: int) -> list[int]:
        """Other tasks of the same tag, of which something runs."""
        tag = self._tags[task]
        return [
            other
            for other, curve in enumerate(self._curves)
            if other != task and tag is not None and self._tags[other] == tag and np.isfinite(curve.best)
        ]

    def _best_speed(self, task: int) -> float:
        """The highest flops per second among similar tasks; 0 if there are none."""
        return max((self._flops[other] / self._curves[other].best for other in self._similar(task)), default=0.0)

    def _is_not_similar(self, task: int) -> bool:
        similar, curve, settings = self._similar(task), self._curves[task], self._settings
        if not similar or not np.isfinite(curve.best):
            return False
        fastest = max(similar, key=lambda other: self._flops[other] / self._curves[other].best)
        ahead = curve.shares - self._curves[fastest].shares
        return ahead > settings.patience and self._flops[task] / curve.best < self._best_speed(task) / settings.beta
