"""Workers and tuners that are killed, interrupted or left: nothing hangs, and no process stays behind."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ansorlite.errors import TuningError
from ansorlite.measure import Measurer, forking
from ansorlite.measure.forking import ForkServer
from ansorlite.measure.pool import Job, Pool
from ansorlite.measure.process import WorkerProcess
from ansorlite.measure.protocol import Phase, Purpose, Run, start_message
from ansorlite.records import Outcome
from ansorlite.target import host
from ansorlite.temporary import TemporaryFolder
from tests.interrupts import PYTHON_M
from tests.unit.measure.fake_backend import faked
from tests.unit.measure.tasks import matmul
from tests.unit.measure.test_measurer import GOOD, SETTINGS
from tests.waiting import LIMIT, wait_for

WAITS = faked("waits")


@pytest.fixture(scope="module")
def inherited_pid_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("waits") / "pid"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKE_BACKEND_PID", str(path))
        yield path


@pytest.fixture
def pid_file(inherited_pid_file: Path) -> Path:
    """Where the candidate ``WAITS`` writes its process id once it runs."""
    inherited_pid_file.unlink(missing_ok=True)
    return inherited_pid_file


@pytest.fixture(scope="module")
def measurer(inherited_pid_file: Path) -> Iterator[Measurer]:
    assert inherited_pid_file.parent.exists()
    with Measurer(settings=replace(SETTINGS, run_seconds=1000.0)) as measurer:
        yield measurer


def pid_in(path: Path) -> int:
    wait_for(lambda: path.exists() and path.read_text())
    return int(path.read_text())


def workers(process: psutil.Process) -> list[psutil.Process]:
    return [worker for server in servers(process) for worker in server.children()]


def servers(process: psutil.Process) -> list[psutil.Process]:
    alive = (child for child in process.children() if child.status() != psutil.STATUS_ZOMBIE)
    return [child for child in alive if "ansorlite.measure.fork_server" in child.cmdline()]


def test_a_runner_killed_from_outside_costs_one_record(measurer: Measurer, pid_file: Path) -> None:
    killer = threading.Thread(target=lambda: os.kill(pid_in(pid_file), signal.SIGKILL))
    killer.start()
    killed, fine = measurer.measure(matmul(), [WAITS, GOOD])
    killer.join()
    assert killed.outcome is Outcome.CRASH
    assert "SIGKILL" in killed.error.partition("\n")[0]
    assert fine.outcome is Outcome.OK


def test_workers_killed_while_idle_cost_nothing(measurer: Measurer) -> None:
    list(measurer.measure(matmul(3), [GOOD]))
    for worker in workers(psutil.Process()):
        worker.kill()
        worker.wait()
    assert [m.outcome for m in measurer.measure(matmul(4), [GOOD])] == [Outcome.OK]


def test_measurements_may_be_left_half_way(measurer: Measurer) -> None:
    (first,) = itertools.islice(measurer.measure(matmul(5), [GOOD] * 3), 1)
    assert first.outcome is Outcome.OK
    assert [m.outcome for m in measurer.measure(matmul(6), [GOOD])] == [Outcome.OK]


class StoppedError(Exception):
    """Stands for KeyboardInterrupt, which would end the tests."""


def test_an_interrupt_ends_busy_workers_and_closing_removes_all_files(
    inherited_pid_file: Path, pid_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(_signal: int, _frame: object) -> None:
        raise StoppedError

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=lambda: pid_in(pid_file) and os.kill(os.getpid(), signal.SIGUSR1))
    sender.start()
    try:
        with Measurer(settings=replace(SETTINGS, run_seconds=1000.0)) as measurer:
            with pytest.raises(StoppedError):
                list(measurer.measure(matmul(), [GOOD, WAITS]))
            assert not psutil.pid_exists(int(inherited_pid_file.read_text()))
            measurer.close()
        assert list(tmp_path.iterdir()) == []
    finally:
        signal.signal(signal.SIGUSR1, old)
        sender.join()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_tuner_that_ends_takes_its_workers_with_it(pid_file: Path, tmp_path: Path, how: signal.Signals) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    tuner = subprocess.Popen([*PYTHON_M, "tests.unit.measure.hang"], stderr=subprocess.DEVNULL, env=environment)
    pid = pid_in(pid_file)
    born = workers(psutil.Process(tuner.pid))
    assert pid in [worker.pid for worker in born]
    tuner.send_signal(how)
    assert tuner.wait(LIMIT) != 0
    wait_for(lambda: not any(worker.is_running() for worker in born))
    assert list(tmp_path.iterdir()) == []


def test_workers_are_recycled() -> None:
    others = {worker.pid for worker in workers(psutil.Process())}
    with Measurer(settings=replace(SETTINGS, recycle=2)) as measurer:
        wait_for(lambda: len(workers(psutil.Process())) == len(others) + 2)
        before = {worker.pid for worker in workers(psutil.Process())} - others
        assert not any(m.outcome.failed for m in measurer.measure(matmul(), [GOOD] * 2))
        assert before.isdisjoint(worker.pid for worker in workers(psutil.Process()))


def test_a_server_that_is_killed_is_replaced_and_costs_one_record(pid_file: Path) -> None:
    def kill() -> None:
        pid_in(pid_file)
        for server in servers(psutil.Process()):
            if server not in others:
                server.kill()

    others = servers(psutil.Process())
    with Measurer(settings=replace(SETTINGS, run_seconds=1000.0)) as measurer:
        killer = threading.Thread(target=kill)
        killer.start()
        killed, fine = measurer.measure(matmul(), [WAITS, GOOD])
        killer.join()
        assert killed.outcome is Outcome.CRASH
        assert fine.outcome is Outcome.OK


def test_that_a_worker_is_dead_is_known_before_its_server_says_so() -> None:
    others, server = servers(psutil.Process()), ForkServer([])
    server.join()
    (process,) = (each for each in servers(psutil.Process()) if each not in others)
    with TemporaryFolder() as folder:
        worker = WorkerProcess(server, folder, {})
        wait_for(process.children)
        assert worker.alive
        process.suspend()
        process.children()[0].kill()
        wait_for(lambda: not worker.alive)
        process.resume()
        worker.kill()
        assert "SIGKILL" in worker.cause
    server.leave()


def test_a_server_that_cannot_start_ends_the_tuning_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(forking.MODULES, Purpose.RUN, "no_such_module")
    server, task = ForkServer([Purpose.RUN]), matmul()
    job = Job(task, Run(task.key, "", "", None, None), dict.fromkeys(Phase, LIMIT))
    with TemporaryFolder() as folder:
        pool = Pool(server, 1, start_message(Purpose.RUN, host(1), SETTINGS), folder, 500, {})
        with pytest.raises(TuningError, match=r"(?s)die as they start.*status 1.*no_such_module"):
            list(pool.run([job]))
        pool.close()


def test_workers_that_cannot_start_end_the_tuning_with_the_reason() -> None:
    settings = replace(SETTINGS, backend="no_such_module")
    expected = r"(?s)die as they start.*status 1.*no_such_module"
    with Measurer(settings=settings) as measurer, pytest.raises(TuningError, match=expected):
        list(measurer.measure(matmul(), [GOOD]))
