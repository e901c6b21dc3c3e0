"""What the tuner tells while it runs. Whoever draws, logs or tests listens: a listener is any callable that takes an event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ansorlite.task import Task
from ansorlite.tuner.result import Trial, TuneResult


@dataclass(frozen=True)
class Started:
    """Tuning begins.

    Attributes:
        tasks: each with its weight.
        trials: how many measurements there will be in all, restored ones included.
        time_limit: seconds after which it stops, if any.
    """

    tasks: tuple[tuple[Task, int], ...]
    trials: int
    time_limit: float | None


@dataclass(frozen=True)
class Measured:
    """One more measurement is known (and stored)."""

    trial: Trial


@dataclass(frozen=True)
class RoundFinished:
    """One round of one task is over.

    Attributes:
        task: index of the task.
        round: 1 for the first of this run.
        correlation: Spearman's rank correlation of predicted score and measured speed over the round's candidates that ran;
            ``None`` when nothing was predicted or fewer than two ran.
    """

    task: int
    round: int
    correlation: float | None


@dataclass(frozen=True)
class Finished:
    """Tuning is over."""

    result: TuneResult


Event: TypeAlias = Started | Measured | RoundFinished | Finished
Listener: TypeAlias = Callable[[Event], None]
