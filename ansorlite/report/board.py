"""The score board: what the events so far come to. It holds no drawing, so that it can be tested and drawn in any way."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ansorlite.sketch.candidate import NAIVE
from ansorlite.tuner.events import Event, Finished, Measured, RoundFinished, Started
from ansorlite.tuner.result import label


@dataclass
class Line:
    """One task on the board. Times are seconds of one run."""

    name: str
    weight: int
    naive: float | None = None
    best: float | None = None
    trials: int = 0
    errors: int = 0
    touched: int = 0
    correlation: float | None = None


@dataclass
class Board:
    """The standing of a tuning run.

    Attributes:
        trials: measurements to be made in all.
        done: measurements known.
        restored: how many of those came from the database.
    """

    lines: list[Line] = field(default_factory=list)
    trials: int = 0
    time_limit: float | None = None
    done: int = 0
    restored: int = 0
    errors: int = 0
    current: int | None = None

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        match event:
            case Started():
                self.lines = [Line(label(task), weight) for task, weight in event.tasks]
                self.trials, self.time_limit = event.trials, event.time_limit
            case Measured():
                self._measured(event)
            case RoundFinished():
                self.lines[event.task].correlation = event.correlation
            case Finished():
                self.current = None

    def _measured(self, event: Measured) -> None:
        trial, line = event.trial, self.lines[event.trial.task]
        self.done += 1
        self.restored += trial.restored
        self.current = trial.task
        line.trials += 1
        line.touched = self.done
        line.errors += trial.outcome.failed
        self.errors += trial.outcome.failed
        if trial.latency is None:
            return
        if trial.candidate == NAIVE:
            line.naive = trial.latency
        line.best = trial.latency if line.best is None else min(line.best, trial.latency)

    @property
    def best(self) -> float:
        """Seconds of all tasks, weighted; infinite while one has no program that runs."""
        return math.fsum(line.weight * (math.inf if line.best is None else line.best) for line in self.lines)

    @property
    def naive(self) -> float:
        """Seconds of all tasks as written, weighted; infinite while one is not known."""
        return math.fsum(line.weight * (math.inf if line.naive is None else line.naive) for line in self.lines)

    def seconds_left(self, elapsed: float) -> float | None:
        """An estimate from the pace so far; ``None`` before there is one."""
        fresh = self.done - self.restored
        by_pace = elapsed / fresh * max(0, self.trials - self.done) if fresh else None
        by_limit = None if self.time_limit is None else max(0.0, self.time_limit - elapsed)
        known = [seconds for seconds in (by_pace, by_limit) if seconds is not None]
        return min(known) if known else None
