"""Ansor's task scheduler (OSDI 2020, section 6): the next share goes where it is expected to lower the objective most.

For a task with best latency ``g`` after ``t`` shares, the expected change by one more is a mean of what the last shares
gave, and of an optimistic guess of what is to come: the lower of ``g - g / t`` and of the latency at which the task
would be as good as ``1 / beta`` of the best similar task::

    alpha * (g(t) - g(t - window)) / window  +  (1 - alpha) * (min(g - g / t, beta * flops / best flops per s) - g)

That is multiplied by the derivative of the objective by ``g``: of the objective by the latencies of the models, and of these,
which are sums over tasks, by ``g``.

What differs from TVM's: derivatives are exact, not taken with a step of 0.1 ms that is longer than most kernels; first shares
go to what takes longest as written; a task of which nothing runs is given up instead of being tried for ever; and a task gets
nothing more when what it is expected to give (:mod:`ansorlite.task_scheduler.forecast`) is not worth it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansorlite.task_scheduler.curve import Curve
from ansorlite.task_scheduler.forecast import expected_fall, is_judged
from ansorlite.task_scheduler.objectives import Goal, Objective, TotalLatency
from ansorlite.task_scheduler.protocol import Share, TaskInfo


@dataclass(frozen=True)
class GradientSettings:
    """The constants of the formula.

    Attributes:
        alpha: the weight of what the last shares gave, against the guess.
        beta: how far below the best similar task a task is trusted to come.
        window: how many shares back the last shares go.
        patience: a task that got more than so many shares more than the fastest similar one, and is still slower than ``beta``
            allows, is not similar after all.
        stop_below: a task gets no share that is expected to lower the objective by less than this share of itself.
    """

    alpha: float = 0.2
    beta: float = 2.0
    window: int = 3
    patience: int = 5
    stop_below: float = 0.0


class GradientScheduler:
    """A :class:`~ansorlite.task_scheduler.protocol.TaskScheduler`. First one share for each task, then by gradient."""

    def __init__(
        self, tasks: Sequence[TaskInfo], objective: Objective | None = None, settings: GradientSettings = GradientSettings()
    ) -> None:
        """``objective`` of the latencies of the models that the tasks are used in; by default their sum."""
        self._settings = settings
        self._flops = [task.flops for task in tasks]
        self._tags = [task.tag for task in tasks]
        self._curves = [Curve() for _ in tasks]
        models = len(tasks[0].uses) if tasks else 1
        self._uses = np.array([task.uses for task in tasks], np.float64).reshape(len(tasks), models).T
        self._objective = TotalLatency([Goal()] * models) if objective is None else objective

    def next(self) -> Share | None:
        slopes, gains = self._slopes(), self._gains()
        useful = [task for task in self._alive() if gains[task] >= self._settings.stop_below]
        untried = [task for task in useful if not self._curves[task].shares]
        if untried:
            # Of equal ones, the first.
            task = max(untried, key=lambda task: self._curves[task].best * slopes[task] if slopes[task] else math.inf)
        elif useful:
            # The steepest gradient, and among equal ones who had least.
            task = min(useful, key=lambda task: (slopes[task] * self._change(task), self._curves[task].shares))
        else:
            return None
        self._curves[task].handed_out = True
        return Share(task)

    def expected_gain(self) -> float:
        gains, alive = self._gains(), self._alive()
        if not alive:
            return 0.0
        task = max(alive, key=lambda task: gains[task])
        return gains[task] if is_judged(self._curves[task].after) else math.inf

    def update(self, task: int, latency: float | None, trials: int, seconds: float = 0.0) -> None:
        self._curves[task].update(latency, trials, seconds)
        if self._is_not_similar(task):
            self._tags[task] = None

    def gradient(self, task: int) -> float:
        """The expected change of the objective by one more share for ``task``, which has had one; 0 or less."""
        return float(self._slopes()[task]) * self._change(task)

    def _change(self, task: int) -> float:
        """The expected change of the latency of ``task``, in seconds."""
        curve, settings = self._curves[task], self._settings
        after, now = curve.after, curve.best
        past = (now - after[-1 - settings.window]) / settings.window if curve.shares > settings.window else 0.0
        hoped = now - now / curve.shares
        best = self._best_speed(task)
        if best and self._flops[task]:
            hoped = min(hoped, settings.beta * self._flops[task] / best)
        return settings.alpha * past + (1 - settings.alpha) * (hoped - now)

    def _alive(self) -> list[int]:
        """The tasks that can make use of a share, and that the objective depends on."""
        slopes = self._slopes()
        unknown = [not math.isfinite(curve.best) for curve in self._curves]
        return [task for task, curve in enumerate(self._curves) if curve.alive and (unknown[task] or slopes[task] > 0)]

    def _gains(self) -> list[float]:
        """By which share of itself the objective is expected to fall with a share for each task; infinite where nothing runs."""
        objective, slopes = self._objective(self._latencies()), self._slopes()
        return [
            slope * curve.best * expected_fall(curve.after) / objective if math.isfinite(curve.best) else math.inf
            for curve, slope in zip(self._curves, slopes, strict=True)
        ]

    def _latencies(self) -> NDArray[np.float64]:
        """Of each model: that of its tasks that run."""
        best = np.array([curve.best if math.isfinite(curve.best) else 0.0 for curve in self._curves])
        latencies: NDArray[np.float64] = self._uses @ best
        return latencies

    def _slopes(self) -> NDArray[np.float64]:
        """The derivative of the objective by the latency of each task."""
        slopes: NDArray[np.float64] = self._objective.slopes(self._latencies()) @ self._uses
        return slopes

    def _similar(self, task: int) -> list[int]:
        """Other tasks of the same tag, of which something runs."""
        tag = self._tags[task]
        return [
            other
            for other, curve in enumerate(self._curves)
            if other != task and tag is not None and self._tags[other] == tag and math.isfinite(curve.best)
        ]

    def _best_speed(self, task: int) -> float:
        """The highest flops per second among similar tasks; 0 if there are none."""
        return max((self._flops[other] / self._curves[other].best for other in self._similar(task)), default=0.0)

    def _is_not_similar(self, task: int) -> bool:
        similar, curve, settings = self._similar(task), self._curves[task], self._settings
        if not similar or not math.isfinite(curve.best):
            return False
        fastest = max(similar, key=lambda other: self._flops[other] / self._curves[other].best)
        ahead = curve.shares - self._curves[fastest].shares
        return ahead > settings.patience and self._flops[task] / curve.best < self._best_speed(task) / settings.beta
