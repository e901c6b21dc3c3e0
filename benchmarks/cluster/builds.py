"""Trials a second with many builders, of a compiler that sleeps: so that a machine of two cores can show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.measure.dispatch import Dispatcher, Station
from ansorlite.measure.local import LocalBuilder
from ansorlite.measure.roles import Artifact, Built, Ran, Rival, Workers
from ansorlite.measure.verdict import Verdict
from ansorlite.records.measurement import Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import host
from ansorlite.task import Task
from benchmarks.cluster.backend import candidate
from benchmarks.cluster.workload import task


@dataclass(frozen=True)
class Rate:
    """Of one number of builders.

    Attributes:
        rate: candidates a second.
        ideal: the same if nothing but the compiler, or the runner where that is slower, took time.
        overhead: CPU seconds of the tuner's process a candidate.
    """

    what: str
    builders: int
    rate: float
    ideal: float
    overhead: float

    @property
    def efficiency(self) -> float:
        return self.rate / self.ideal


def processes(builders: int, seconds: float, each: int) -> Rate:
    """Real processes of this machine, ``each`` candidates a builder."""
    settings = MeasureSettings(builders=builders, backend="benchmarks.cluster.backend")
    builder = LocalBuilder(host(), settings)
    try:
        list(builder.build(task(), [candidate(number, 0.2) for number in range(builders)]))  # all have started
        batch = [candidate(number, seconds) for number in range(builders * each)]
        return _timed("processes", builders, builders / seconds, len(batch), lambda: list(builder.build(task(), batch)))
    finally:
        builder.close()


class _Sleeper:
    """A builder that is simulated: a thread that sleeps."""

    def __init__(self, seconds: float) -> None:
        self.ready: Future[None] = Future()
        self.ready.set_result(None)
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1)

    def ask(self, _task: Task, candidate: Candidate) -> Future[Built]:
        return self._thread.submit(self._compiled, candidate)

    def _compiled(self, candidate: Candidate) -> Built:
        time.sleep(self._seconds)
        return Artifact(candidate, b"", self._seconds, 0.0)

    def end(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class _Simulated:
    """A builder of the measurer's: the dispatcher of clusters, and builders that sleep."""

    aside = True

    def __init__(self, builders: int, seconds: float) -> None:
        self.size = builders
        self._waiting = [_Sleeper(seconds) for _ in range(builders)]
        self._dispatcher = Dispatcher(self, 60.0, 60.0)

    def hire(self, _stations: Sequence[Station]) -> Sequence[Station]:
        hired, self._waiting = self._waiting, []
        return hired

    def build(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Built]:
        return self._dispatcher.build(task, candidates)

    def close(self) -> None:
        self._dispatcher.close()


class _Clock:
    """A runner that takes so long for each program."""

    machine = "simulated"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def prepare(self, task: Task) -> None:
        pass

    def run(self, _task: Task, artifacts: Sequence[Artifact], _rival: Rival | None) -> list[Ran]:
        time.sleep(self._seconds * len(artifacts))
        return [Ran(Verdict(Outcome.OK), 1.0, self._seconds)] * len(artifacts)

    def revive(self) -> bool:
        return True

    def close(self) -> None:
        pass


def simulated(builders: int, seconds: float, each: int, runner: float) -> Rate:
    """Builders that are threads of this process, through the measurer, with a runner that takes ``runner`` seconds a program."""
    pair = Workers(_Simulated(builders, seconds), [_Clock(runner)])
    with Measurer(host(), MeasureSettings(), lambda _target, _settings: pair) as measurer:
        batch = [candidate(number, seconds) for number in range(builders * each)]
        ideal = min(builders / seconds if seconds else float("inf"), 1 / runner if runner else float("inf"))
        return _timed("simulated", builders, ideal, len(batch), lambda: list(measurer.measure(task(), batch)))


def _timed(what: str, builders: int, ideal: float, count: int, do: Callable[[], object]) -> Rate:
    start, cpu = time.perf_counter(), time.process_time()
    do()
    seconds = time.perf_counter() - start
    return Rate(what, builders, count / seconds, ideal, (time.process_time() - cpu) / count)
