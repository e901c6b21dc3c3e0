"""Clusters of this machine's processes: one that loses nodes and workers, and one that measures for long."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.cluster_utils import Cluster

import ansorlite as al
from ansorlite.measure import Measurer, MeasureSettings, Referee
from ansorlite.measure.cluster.workers import open_workers
from ansorlite.programs.build import build_candidate
from ansorlite.programs.packing import pack
from ansorlite.records import Database, Measurement
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target, host
from ansorlite.task import Task
from ansorlite.tuner.loop import Measures
from ansorlite.tuner.measurers import Elsewhere
from benchmarks.cluster.backend import candidate
from benchmarks.cluster.workload import task

_TIMES = {"num_cpus": 1, "resources": {"ansorlite_runner": 1}}


@contextmanager
def _cluster(builders: int, runners: int) -> Iterator[tuple[Cluster, list[Any]]]:
    """A head that times, more that do, and nodes that build; these two kinds are given."""
    os.environ |= {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_health_check_period_ms": "500"}
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    cluster = Cluster(initialize_head=True, head_node_args={**_TIMES, "include_dashboard": False})
    try:
        others = [cluster.add_node(**_TIMES) for _ in range(runners - 1)]
        nodes = [cluster.add_node(num_cpus=1) for _ in range(builders)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster, [*nodes, *others]
    finally:
        ray.shutdown()
        cluster.shutdown()


@dataclass(frozen=True)
class Survived:
    """What became of a tuning whose cluster lost a node and a worker.

    Attributes:
        records: in the database.
        different: programs among them; the best is timed twice.
        lost: records that say that their machine was lost.
        ratio: latency of the cluster's best, in those of the best that this machine finds alone; timed in turns.
    """

    records: int
    different: int
    lost: int
    ratio: float


@dataclass(frozen=True)
class _Watched(Elsewhere):
    """Does something after so many measurements."""

    events: Mapping[int, Callable[[], None]]

    @contextmanager
    def __call__(self, target: Target, settings: MeasureSettings) -> Iterator[_Counting]:
        # All nodes are one machine, however fast it is at the moment.
        with super().__call__(target, replace(settings, alike=1e9)) as measurer:
            yield _Counting(measurer, self.events)


class _Counting:
    def __init__(self, measurer: Measures, events: Mapping[int, Callable[[], None]]) -> None:
        self._measurer = measurer
        self._events = events
        self._count = 0

    def measure(self, task: Task, candidates: Sequence[Candidate], best: Measurement | None) -> Iterator[Measurement]:
        for measurement in self._measurer.measure(task, candidates, best):
            self._count += 1
            self._events.get(self._count, lambda: None)()
            yield measurement


def survive(builders: int, runners: int, trials: int) -> Survived:
    """Tune a product of matrices; kill a node after a third of the trials, stop a worker after two thirds."""
    workload = task(128)
    with tempfile.TemporaryDirectory() as folder:
        alone = al.tune(workload, trials=trials, database=Path(folder, "alone.db"), progress=False)
        with _cluster(builders, runners) as (cluster, nodes):

            def kill() -> None:
                cluster.remove_node(nodes.pop(), allow_graceful=False)

            watched = _Watched("ray", {trials // 3: kill, 2 * trials // 3: lambda: _stop("BuilderActor")})
            al.tune(workload, trials=trials, measurer=watched, database=Path(folder, "cluster.db"), progress=False)
        with Database(Path(folder, "cluster.db")) as database:
            found = [record.measurement for record in database.records()]
        best = min((m for m in found if m.sound), key=lambda m: m.latency or 0.0).candidate
        first = alone.tasks[0].best
        assert first is not None
        lost = sum("lost" in m.error for m in found)
        return Survived(len(found), len({m.key for m in found}), lost, _ratio(best, first))


def _stop(actor: str) -> None:
    """A process of that actor is there, and does nothing any more."""
    for child in psutil.Process().children(recursive=True):
        if child.name().startswith("ray::") and actor in "".join(child.cmdline()):
            child.send_signal(signal.SIGSTOP)
            return


def _ratio(one: Candidate, other: Candidate) -> float:
    programs = [pack(build_candidate(task(128), each)) for each in (one, other)]
    referee = Referee()
    try:
        turn = referee.compare(task(128), programs[0], programs[1], 2.0)
    finally:
        referee.close()
    assert turn.latency is not None
    assert turn.rival is not None
    return turn.latency / turn.rival


@dataclass(frozen=True)
class Stored:
    """Bytes in the object store: after a hundred candidates, and after all."""

    early: float
    late: float


def long_run(candidates: int, nbytes: int) -> Stored:
    """Measure so many candidates, each of so many bytes of code, on one runner and two builders."""
    settings = MeasureSettings(builders=1, backend="benchmarks.cluster.backend", repeats=1, alike=1e9)
    early = 0.0
    with _cluster(2, 1), Measurer(host(threads=1), settings, lambda t, s: open_workers("ray", t, s)) as measurer:
        batch = [candidate(number, 0.0, nbytes) for number in range(candidates)]
        for number, _ in enumerate(measurer.measure(task(), batch)):
            early = _stored() if number == 100 else early
        return Stored(early, _stored())


def _stored() -> float:
    return float(ray.cluster_resources()["object_store_memory"] - ray.available_resources()["object_store_memory"])
