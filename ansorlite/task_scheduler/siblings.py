"""Trials for siblings (FamilySeer: Zhang et al., arXiv 2201.00194): what one task of a family is measured for teaches the model
of all, so a sibling of the one that the gradient chose gets a few trials along with it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from ansorlite.task_scheduler.gradient import GradientScheduler, GradientSettings
from ansorlite.task_scheduler.objectives import Objective
from ansorlite.task_scheduler.protocol import Share, TaskInfo

#: Trials of a sibling.
_SIBLING: Final = 16


class FamilyScheduler(GradientScheduler):
    """A :class:`GradientScheduler`, after each of whose shares the sibling of the steepest gradient gets 16 trials more.

    These count in all, but are no share of the sibling's: its curve is as if they had come unasked. (There, they are no share
    either, but they grow the history that the gradient looks back on.)
    """

    def __init__(
        self, tasks: Sequence[TaskInfo], objective: Objective | None = None, settings: GradientSettings | None = None
    ) -> None:
        super().__init__(tasks, objective, settings or GradientSettings())
        self._families: list[Hashable] = [task.family for task in tasks]
        self._sibling: int | None = None
        self._given: int | None = None

    def next(self) -> Share | None:
        if self._sibling is not None and self._curves[self._sibling].alive:
            self._given, self._sibling = self._sibling, None
            return Share(self._given, _SIBLING)
        share = super().next()
        self._sibling = None if share is None else self._best_sibling(share.task)
        return share

    def update(self, task: int, latency: float | None, trials: int, seconds: float = 0.0) -> None:
        if task == self._given:
            # One trial unasked: it tells a latency, and is no share. None at all retires the task.
            self._given, trials, seconds = None, min(trials, 1), 0.0
        super().update(task, latency, trials, seconds)

    def _best_sibling(self, task: int) -> int | None:
        """Of those that have had a share."""
        siblings = [
            other
            for other in self._alive()
            if other != task
            and self._families[other] is not None
            and self._families[other] == self._families[task]
            and self._curves[other].shares
        ]
        return min(siblings, key=self.gradient, default=None)
