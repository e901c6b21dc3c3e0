"""What tuning hands back: plain facts, ready to be printed or stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ansorlite.records.measurement import Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


@dataclass(frozen=True)
class Trial:
    """One measurement.

    Attributes:
        task: index of its task in :attr:`TuneResult.tasks`.
        outcome: how it ended.
        latency: seconds of one run; ``None`` when it has none.
        error: why it has none; ``None`` when it has one.
        at: seconds of tuning until it was known; 0.0 when it was read from the database.
        restored: whether it was read from the database instead of being measured.
    """

    task: int
    candidate: Candidate
    outcome: Outcome
    latency: float | None
    error: str | None
    at: float
    restored: bool


@dataclass(frozen=True)
class TaskResult:
    """What became of one task.

    Attributes:
        weight: how many times the model runs it; 1 outside of a model.
        naive: seconds of its loops as written: serial, scalar, one thread. ``None`` when that was not measured.
        best_latency: seconds of the best program; infinite when none runs.
        best: that program; ``None`` when none runs.
        trials: measurements made, those of earlier runs included.
        errors: how many of them failed; a candidate that was stopped for being slow did not.
    """

    task: Task
    weight: int
    naive: float | None
    best_latency: float
    best: Candidate | None
    trials: int
    errors: int

    @property
    def name(self) -> str:
        """A short label for people."""
        return label(self.task)


@dataclass(frozen=True)
class TuneResult:
    """What tuning came to.

    Attributes:
        best_latency: seconds: of a task, its best program; of several tasks or a model, the sum over the tasks of weight times
            best. Infinite while a task has no program that runs.
        trials: measurements made, those of earlier runs on the same database included.
        restored: how many of them came from the database.
        seconds: wall-clock seconds of this run.
        history: every measurement, in the order in which it was made.
        tasks: one entry a task.
        phases: where the seconds went: ``search``, ``compile``, ``measure``, ``check`` and ``other``. They add up to ``seconds``.
        interrupted: whether Ctrl-C ended it.
    """

    best_latency: float
    trials: int
    restored: int
    seconds: float
    history: tuple[Trial, ...]
    tasks: tuple[TaskResult, ...]
    phases: Mapping[str, float]
    interrupted: bool

    @property
    def naive_latency(self) -> float:
        """Seconds of the naive programs, weighted; infinite while one of them is not known."""
        return math.fsum(t.weight * (math.inf if t.naive is None else t.naive) for t in self.tasks)


def label(task: Task) -> str:
    """A short name for people: what is computed, from which shape, to which.

    >>> from ansorlite import te
    >>> a = te.placeholder((4, 8), name="a")
    >>> label(Task([a, te.compute((8, 4), lambda i, j: te.exp(a[j, i]), name="exp")]))
    'exp 4x8 -> 8x4'
    """
    names = [t.name for t in task.dag.computes]
    shown = names if len(names) <= 4 else [names[0], "...", names[-1]]
    ends = [*task.dag.inputs[:1], task.dag.outputs[-1]]
    return f"{'+'.join(shown)} {' -> '.join(_shape(end.shape) for end in ends)}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
