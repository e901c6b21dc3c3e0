"""What the tuner tells while it runs. Whoever draws, logs or tests listens: a listener is any callable that takes an event."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ansorlite.search import RoundLog
from ansorlite.task import Task
from ansorlite.tuner.result import Trial, TuneResult


@dataclass(frozen=True)
class Calibrating:
    """Before all else this machine is measured, as nothing is known of its processor.

    Attributes:
        cpu: LLVM's name of it.
    """

    cpu: str


@dataclass(frozen=True)
class Started:
    """Tuning begins.

    Attributes:
        tasks: each with its weight.
        trials: how many measurements there will be in all, restored ones included.
        time_limit: seconds after which it stops, if any.
        elapsed: seconds of them that are over.
    """

    tasks: tuple[tuple[Task, int], ...]
    trials: int
    time_limit: float | None
    elapsed: float = 0.0


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
        log: what the strategy says of it; ``None`` when it proposed nothing.
        expected_gain: by which share the objective is expected to fall in the next round, as :class:`TuneResult` has it.
    """

    task: int
    round: int
    log: RoundLog | None
    expected_gain: float

    @property
    def correlation(self) -> float | None:
        """Spearman's rank correlation of predicted score and measured speed; ``None`` where there is none."""
        return None if self.log is None or math.isnan(self.log.rank_correlation) else self.log.rank_correlation


@dataclass(frozen=True)
class Finished:
    """Tuning is over."""

    result: TuneResult


Event: TypeAlias = Calibrating | Started | Measured | RoundFinished | Finished
Listener: TypeAlias = Callable[[Event], None]
