"""Stand-ins for the parts that the loop joins: a strategy with a list, a measurer with a formula, a scheduler in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ansorlite import te
from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement, Outcome, Seconds
from ansorlite.search import Observation, RoundLog
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from ansorlite.task_scheduler import RoundRobin, TaskInfo
from ansorlite.tuner.clock import PhaseClock
from ansorlite.tuner.events import Event
from ansorlite.tuner.loop import Tuner
from ansorlite.tuner.result import TuneResult
from ansorlite.tuner.state import TaskState

#: What the trace of every candidate begins with: no real one's does.
KIND = "program"


def scale_task(extent: int = 8) -> Task:
    a = te.placeholder((extent,), name="a")
    return Task([a, te.compute((extent,), lambda i: a[i] * 2.0, name="scale")])


def candidate(number: int) -> Candidate:
    return Candidate(f"{KIND} {number}")


def number(candidate: Candidate) -> int:
    """The number that was given to :func:`candidate`."""
    return int(candidate.trace.split()[1])


class PlainKeys:
    """Every candidate is a program of its own."""

    def __init__(self, kinds: tuple[str, ...] = (KIND,)) -> None:
        self.kinds = kinds

    def __contains__(self, candidate: Candidate) -> bool:
        return candidate == NAIVE or candidate.trace.split()[0] in self.kinds

    def __call__(self, candidates: Sequence[Candidate]) -> list[str]:
        return [c.trace for c in candidates]


class ListStrategy:
    """Proposes candidates 0, 1, 2, ... once each, and remembers what it is told. It keeps no log."""

    rounds: tuple[RoundLog, ...] = ()

    def __init__(self, size: int = 1000) -> None:
        self.left = [candidate(i) for i in range(size)]
        self.observed: list[Observation] = []

    def propose(self, n: int) -> list[Candidate]:
        batch, self.left = self.left[:n], self.left[n:]
        return batch

    def observe(self, results: Sequence[Observation]) -> None:
        self.observed += results
        known = {each.candidate for each in results}
        self.left = [candidate for candidate in self.left if candidate not in known]


def formula(candidate: Candidate) -> float | None:
    """Naive takes a second; the others are faster the higher their number; each seventh crashes."""
    if candidate == NAIVE:
        return 1.0
    n = number(candidate)
    return None if n % 7 == 6 else 0.5 / (1 + n)


class FakeMeasurer:
    """Measures by a formula, and remembers everything it was asked."""

    def __init__(self, latency: Callable[[Candidate], float | None] = formula) -> None:
        self.latency = latency
        self.asked: list[tuple[str, Candidate]] = []
        self.bests: list[float | None] = []
        self.opened = 0
        self.closed = 0

    def __call__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        self.opened += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.closed += 1

    def measure(self, task: Task, candidates: Sequence[Candidate], best: Measurement | None) -> Iterator[Measurement]:
        assert best is None or best.latency is not None
        self.bests.append(None if best is None else best.latency)
        for item in candidates:
            self.asked.append((task.key, item))
            latency = self.latency(item)
            outcome = Outcome.CRASH if latency is None else Outcome.OK
            yield Measurement(
                candidate=item,
                outcome=outcome,
                key=f"key of {item.trace}",
                latency=latency,
                checked=latency is not None,
                error="" if latency is not None else "it crashed",
                seconds=Seconds(0.0, 0.0, 0.0),
                when=float(len(self.asked)),
            )


def run(
    states: list[TaskState],
    trials: int,
    path: Path,
    measurer: FakeMeasurer | None = None,
    events: list[Event] | None = None,
    time_limit: float | None = None,
    clock: PhaseClock | None = None,
) -> TuneResult:
    """Tune the tasks in turns, with a database at ``path``."""
    with Database(path) as database:
        return Tuner(
            states,
            trials=trials,
            time_limit=time_limit,
            database=database,
            scheduler=RoundRobin([TaskInfo()] * len(states)),
            open_measurer=measurer or FakeMeasurer(),
            listener=(events if events is not None else []).append,
            clock=clock,
        ).run()
