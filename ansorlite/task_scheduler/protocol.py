"""What a task scheduler is, and what it knows of a task."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class TaskInfo:
    """One task among those that share the trials.

    Attributes:
        uses: how often the task occurs in each model, so that the latency of model ``m`` is ``sum(uses[m] * latency)``.
        flops: of one run; 0 if not known.
        tag: tasks of equal tag are similar: what one reached in flops per second, another may be expected to reach.
            ``None`` is similar to nothing.
        family: tasks of one family have the same operations, whatever their extents: what is learnt of one may help another.
            ``None`` is a family of its own.
    """

    uses: tuple[float, ...] = (1.0,)
    flops: float = 0.0
    tag: Hashable = None
    family: Hashable = None


@dataclass(frozen=True)
class Share:
    """What a task is given.

    Attributes:
        task: its position.
        trials: how many; ``None``: as many as a round has.
    """

    task: int
    trials: int | None = None


class TaskScheduler(Protocol):
    """Says which task gets the next share of trials."""

    def next(self) -> Share | None:
        """The next share; ``None`` when no task can make use of one."""
        ...

    def expected_gain(self) -> float:
        """By which share of itself the objective is expected to fall with the next share of trials.

        0 when no task can make use of one; infinite while there is too little to judge by.
        """
        ...

    def update(self, task: int, latency: float | None, trials: int, seconds: float = 0.0) -> None:
        """Take note of trials of a task.

        What :meth:`next` handed out counts as a share. So does what comes unasked, if it is more than one trial:
        earlier measurements. A single unasked trial, such as that of the naive program, only tells a latency.

        Args:
            task: its position.
            latency: the best so far, in seconds; ``None`` if no program has run.
            trials: how many were made; 0 says that the task has nothing left to try, and retires it.
            seconds: what they took to compile and to run; 0 if that is not known.
        """
        ...
