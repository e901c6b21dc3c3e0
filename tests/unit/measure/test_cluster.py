"""A Ray cluster of this machine's processes: nodes, actors and the head are lost, the tuning is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import ansorlite as al
from ansorlite.errors import TuningError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.records import Database, Measurement, Outcome
from ansorlite.target import process_target
from ansorlite.task import Task
from tests.unit.measure.fake_backend import faked
from tests.waiting import wait_for
from tests.workloads import matmul

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
cluster_utils = pytest.importorskip("ray.cluster_utils")
builder = pytest.importorskip("ansorlite.measure.cluster.builder")
engine = pytest.importorskip("ansorlite.measure.cluster.engine")
workers = pytest.importorskip("ansorlite.measure.cluster.workers")

#: Candidates of this backend say what they do: their order does not depend on the machine.
FAKE = "tests.unit.measure.fake_backend"
SETTINGS = MeasureSettings(builders=1, build_seconds=3.0, alike=1e9, wait_seconds=20.0)
TARGET = replace(process_target(), threads=1)
TIMES = {"num_cpus": 1, "resources": {"ansorlite_runner": 1}}

Clusters = Callable[..., Any]


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    """Makes clusters whose head times programs."""
    root = str(Path(__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", root)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_health_check_period_ms", "500")
    monkeypatch.setenv("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "1")
    monkeypatch.setattr(builder, "GRACE", 3.0)
    made: list[Any] = []

    def make(**head: Any) -> Any:
        made.append(cluster_utils.Cluster(initialize_head=True, head_node_args={**TIMES, "include_dashboard": False, **head}))
        return made[-1]

    try:
        yield make
    finally:
        ray.shutdown()
        for cluster in made:
            cluster.shutdown()


def attached(cluster: Any) -> None:
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")


def opened(address: str = "ray", settings: MeasureSettings = SETTINGS) -> Measurer:
    return Measurer(TARGET, settings, lambda target, settings: workers.open_workers(address, target, settings))


def actor_process(name: str) -> int:
    """A process of an actor of that class."""
    children = psutil.Process().children(recursive=True)
    found = [child.pid for child in children if child.name().startswith("ray::") and name in "".join(child.cmdline())]
    assert found, [child.cmdline() for child in children]
    return found[0]


def test_nodes_builders_and_runners_are_lost_and_every_candidate_has_one_record(clusters: Clusters) -> None:
    """Two builders and a runner, all of which are lost or stopped in the middle."""
    cluster = clusters()
    second = [cluster.add_node(num_cpus=1) for _ in range(2)][1]
    attached(cluster)
    candidates = [faked("sleeps", 3 + (7 * number) % 30) for number in range(30)]
    task, found = Task(matmul(8, 8, 8), TARGET), []
    with opened(settings=replace(SETTINGS, backend=FAKE, repeats=1)) as measurer:
        assert measurer._builder.size == 2
        for measurement in measurer.measure(task, candidates):
            found.append(measurement)
            if len(found) == 5:
                cluster.remove_node(second, allow_graceful=False)
            if len(found) == 10:
                os.kill(actor_process("BuilderActor"), signal.SIGSTOP)
            if len(found) == 20:
                ray.kill(measurer._lanes[0].runner._actor)  # type: ignore[attr-defined]
    assert [m.candidate for m in found] == candidates
    assert [m.candidate for m in found] == candidates
    lost = [m for m in found if m.outcome.failed]
    assert all(m.outcome is Outcome.CRASH for m in lost)
    # What one builder had when it was lost may go to the other, and be the first there when that is stopped: then it is given up.
    built = [m for m in lost if "the machines that compiled it were lost, 2 of them" not in m.error]
    assert len(lost) <= 2, [m.error for m in lost]
    assert len(built) == 1, [m.error for m in lost]
    assert "was lost while it had this program" in built[0].error
    assert all(m.machine.startswith("ray ") for m in found if m not in lost or m in built)
    best = min((m for m in found if m.outcome is Outcome.OK), key=lambda m: m.latency or 0.0)
    assert best.candidate == faked("sleeps", 3), "as on one machine"


def test_two_runners_share_the_candidates_and_one_is_lost(clusters: Clusters) -> None:
    cluster = clusters()
    other = cluster.add_node(**TIMES)
    cluster.add_node(num_cpus=1)
    attached(cluster)
    candidates = [faked("sleeps", 3 + number) for number in range(24)]
    with opened(settings=replace(SETTINGS, backend=FAKE, repeats=1)) as measurer:
        assert len(measurer._lanes) == 2
        measurer._speeds, found = None, []
        # What machines are compared by is no candidate of this backend.
        measurer._compare_machines = lambda: None  # type: ignore[method-assign]
        for measurement in measurer.measure(Task(matmul(8, 8, 8), TARGET), candidates):
            found.append(measurement)
            if len(found) == 12:
                both = [lane.runner._has is not None for lane in measurer._lanes]  # type: ignore[attr-defined]
                cluster.remove_node(other, allow_graceful=False)
    assert [m.candidate for m in found] == candidates
    assert both == [True, True]
    lost = [m for m in found if m.outcome.failed]
    assert len(lost) <= 1
    assert all("was lost while it had this program" in m.error for m in lost)


def test_one_machine_is_a_cluster_and_its_object_store_does_not_grow(clusters: Clusters, tmp_path: Path) -> None:
    """Builders are on the only node, and rest while it times."""
    attached(clusters())
    task = Task(matmul(32, 32, 32), TARGET)
    before = ray.available_resources()["object_store_memory"]
    tuned = al.tune(task, trials=24, measurer="ray", database=tmp_path / "t.db", progress=False)
    assert [trial.error for trial in tuned.history if trial.outcome.failed] == []
    assert tuned.best_latency < tuned.naive_latency
    # Ray frees what nothing refers to any more when it comes to it, and counts later still.
    wait_for(lambda: ray.available_resources()["object_store_memory"] == before)
    with Database(tmp_path / "t.db") as database:
        records: list[Measurement] = [record.measurement for record in database.records()]
        assert database.best(task.key, TARGET.key) is None, "it says nothing of this machine"
    assert len(records) == tuned.trials == 24
    assert all(m.machine.startswith("ray ") for m in records)
    assert al.tune(task, trials=24, measurer="ray", database=tmp_path / "t.db", progress=False).restored == 24
    unfit = replace(TARGET, threads=999)
    with pytest.raises(TuningError, match=r"no node of ray can time programs: .* they run on 999 threads, and it has \d+ cores"):
        Measurer(unfit, SETTINGS, lambda target, settings: workers.open_workers("ray", target, settings))


@contextmanager
def head(port: int) -> Iterator[None]:
    """The head of a cluster in a process of its own, to which clients connect at ``port``."""
    options = json.dumps({**TIMES, "include_dashboard": False, "ray_client_server_port": port})
    command = [sys.executable, "-m", "tests.unit.measure.ray_head", options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "ready\n" in process.stdout
        yield


@pytest.mark.usefixtures("clusters")
def test_the_head_is_gone_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_ANSWER", 5.0)
    port = 20_000 + os.getpid() % 3_000
    candidates = [faked("sleeps", 3 + number) for number in range(12)]
    found: list[Measurement] = []
    settings = replace(SETTINGS, backend=FAKE, repeats=1, wait_seconds=240.0)
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(head(port))
        with opened(f"ray://127.0.0.1:{port}", settings) as measurer:
            for measurement in measurer.measure(Task(matmul(8, 8, 8), TARGET), candidates):
                found.append(measurement)
                if len(found) == 6:
                    first.close()
                    second.enter_context(head(port))
    assert [m.candidate for m in found] == candidates
    assert not ray.is_initialized(), "what made the connection has ended it"
    (lost,) = [m for m in found if m.outcome.failed]
    assert f"ray://127.0.0.1:{port}" in lost.error
    assert "was lost while it had this program" in lost.error


def test_a_head_that_starts_no_server_in_time_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it never does, the sentence has the last line of the head's traceback, which is the reason."""
    aborted = ConnectionAbortedError("Initialization failure from server:\nTraceback:\n  File\nRuntimeError: no room for it\n")
    calls: list[str] = []

    def init(address: str, **_: Any) -> None:
        calls.append(address)
        if len(calls) % 4:
            raise aborted

    monkeypatch.setattr(engine.ray, "init", init)
    with pytest.raises(TuningError, match=r"at ray://head:1: Initialization failure from server: RuntimeError: no room for it$"):
        engine.Cluster("ray://head:1")
    assert engine.Cluster("ray://head:1").generation == 1
    assert calls == ["ray://head:1"] * 4


def test_no_cluster_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_CONNECT", 3.0)
    with pytest.raises(TuningError, match=r"there is no Ray cluster at ray://127\.0\.0\.1:1: "):
        opened("ray://127.0.0.1:1")
