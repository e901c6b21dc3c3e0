"""What tuning hands back: plain facts, ready to be printed or stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ansorlite.records.measurement import Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


class Stop(Enum):
    """Why tuning ended; the value says it to a person."""

    TRIALS = "all trials are made"
    TIME = "the time is up"
    GAIN = "no task is left that is expected to gain enough"
    INTERRUPTED = "Ctrl-C"


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
        spilled: bytes that a thread of a GPU stores and loads for want of registers, as the assembler of a program that was
            measured says.
    """

    task: int
    candidate: Candidate
    outcome: Outcome
    latency: float | None
    error: str | None
    at: float
    restored: bool
    spilled: int = 0


@dataclass(frozen=True)
class TaskResult:
    """What became of one task.

    Attributes:
        uses: how many times each model runs it; 1 outside of a model.
        naive: seconds of its loops as written: serial, scalar, one thread. ``None`` when that was not measured, as
            where a time limit leaves too little for them.
        best_latency: seconds of the best program; infinite when none runs.
        best: that program; ``None`` when none runs.
        trials: measurements made, those of earlier runs included.
        errors: how many of them failed; a candidate that was stopped for being slow did not.
    """

    task: Task
    uses: tuple[int, ...]
    naive: float | None
    best_latency: float
    best: Candidate | None
    trials: int
    errors: int

    @property
    def name(self) -> str:
        """A short label for people."""
        return label(self.task)

    @property
    def weight(self) -> int:
        """How many times it runs in all."""
        return sum(self.uses)


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
        stopped: why it ended.
        expected_gain: by which share the objective would have been expected to fall in one more round; infinite where that was
            never judged.
    """

    best_latency: float
    trials: int
    restored: int
    seconds: float
    history: tuple[Trial, ...] = field(repr=False)
    tasks: tuple[TaskResult, ...]
    phases: Mapping[str, float]
    stopped: Stop
    expected_gain: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.stopped is Stop.INTERRUPTED

    @property
    def model_latencies(self) -> tuple[float, ...]:
        """Seconds of each model by its best programs; infinite while a task has none that runs."""
        return self._by_model([task.best_latency for task in self.tasks])

    @property
    def naive_model_latencies(self) -> tuple[float, ...]:
        """Seconds of each model by its loops as written; infinite while those of a task are not known."""
        return self._by_model([math.inf if task.naive is None else task.naive for task in self.tasks])

    def _by_model(self, latencies: Sequence[float]) -> tuple[float, ...]:
        uses = zip(*(task.uses for task in self.tasks), strict=True)
        return tuple(math.fsum(n * latency for n, latency in zip(of, latencies, strict=True) if n) for of in uses)

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
