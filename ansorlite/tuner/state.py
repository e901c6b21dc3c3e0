"""What the tuner knows of one task while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ansorlite.features.programs import ProgramSpace
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.search import Strategy
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from ansorlite.tuner.result import TaskResult


class Keys(Protocol):
    """What the tuner needs of :class:`ansorlite.tuner.keys.ProgramKeys`."""

    def __contains__(self, candidate: Candidate) -> bool: ...

    def __call__(self, candidates: Sequence[Candidate]) -> list[str]: ...


@dataclass
class TaskState:
    """One task while it is being tuned.

    Attributes:
        uses: how often each model runs it.
        keys: tells which programs the task has, and which of them are equal.
        first: what is measured before the naive program and anything that the strategy proposes.
        spare: gives what is measured, one after another, until one runs, where none of ``first`` does.
        hints: what other machines recommend; measured next.
        spaces: of its sketches, which are told what an assembler says of their programs.
        naive_estimate: gives the seconds that the analytical cost model expects of one call of the loops as written.
        seen: the keys of all programs measured so far; the search measures none twice.
        sound: the fastest measurement of each program that ran and was right.
        confirmed: whether a program was measured once more after the best had become the best.
    """

    task: Task
    uses: tuple[int, ...]
    strategy: Strategy
    keys: Keys
    first: tuple[Candidate, ...] = ()
    hints: tuple[Candidate, ...] = ()
    spaces: tuple[ProgramSpace, ...] = ()
    naive_estimate: Callable[[], float] = lambda: 0.0
    spare: Callable[[], Sequence[Candidate]] = tuple
    seen: set[str] = field(default_factory=set)
    sound: dict[Candidate, Measurement] = field(default_factory=dict)
    naive: float | None = None
    best: Measurement | None = None
    trials: int = 0
    errors: int = 0
    confirmed: bool = False

    @property
    def best_latency(self) -> float | None:
        return None if self.best is None else self.best.latency

    @property
    def rival(self) -> Candidate | None:
        """What the best has to be faster than: one of ``first``; where that is the best, or does not run, the second best."""
        others = {c: m for c, m in self.sound.items() if c != NAIVE and (self.best is None or c != self.best.candidate)}
        fastest = min(others, key=lambda candidate: _latency(others[candidate]), default=None)
        return next((candidate for candidate in self.first if candidate in others), fastest)

    def add(self, measurement: Measurement) -> None:
        """Count a measurement and keep it if it is the best."""
        self.seen.update(self.keys([measurement.candidate]))
        self.trials += 1
        self._report(measurement)
        again = measurement.candidate in self.sound
        self.confirmed |= again
        if measurement.outcome is not Outcome.OK or measurement.latency is None:
            self.errors += measurement.outcome.failed
            return
        if measurement.candidate == NAIVE:
            self.naive = measurement.latency
        if not measurement.checked:
            return
        if measurement.latency < _latency(self.sound.get(measurement.candidate)):
            self.sound[measurement.candidate] = measurement
        if measurement.latency < _latency(self.best):
            self.best, self.confirmed = measurement, again

    def _report(self, measurement: Measurement) -> None:
        wanted = measurement.registers_wanted
        if wanted is None:
            return
        for space in self.spaces:
            row = space.row_of(measurement.candidate)
            if row is not None:
                return space.report(row, wanted)

    def unseen(self, candidates: Sequence[Candidate]) -> dict[str, Candidate]:
        """Those that are not measured yet, by key; of several that mean one program, the first."""
        result: dict[str, Candidate] = {}
        for key, candidate in zip(self.keys(candidates), candidates, strict=True):
            if key not in self.seen:
                result.setdefault(key, candidate)
        return result

    def result(self) -> TaskResult:
        best = None if self.best is None else self.best.candidate
        return TaskResult(self.task, self.uses, self.naive, _latency(self.best), best, self.trials, self.errors)


def _latency(measurement: Measurement | None) -> float:
    return math.inf if measurement is None or measurement.latency is None else measurement.latency
