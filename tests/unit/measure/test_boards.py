"""Boards: machine code goes there and numbers come back, and nothing that a board does ends the tuning."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.errors import TargetError, TuningError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.measure.board import connection, runner
from ansorlite.measure.board.bundle import BOOTSTRAP
from ansorlite.measure.board.connection import execnet_spec
from ansorlite.measure.board.runner import open_workers
from ansorlite.records import Database, Outcome
from ansorlite.search.default import default_candidate
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target, process_target, resolve
from ansorlite.task import Task
from ansorlite.topi.conv import conv
from tests import emulated
from tests.unit.measure import boards
from tests.workloads import matmul

HERE = replace(process_target(), threads=1)
SETTINGS = MeasureSettings(builders=1, wait_seconds=0.0, run_seconds=2.0, check_seconds=4.0, prepare_seconds=30.0)


def opened(
    target: Target = HERE, bootstrap: str = BOOTSTRAP, address: str = "", settings: MeasureSettings = SETTINGS
) -> Measurer:
    place = address or f"popen://{sys.executable}"
    return Measurer(target, settings, lambda target, settings: open_workers(place, target, settings, bootstrap))


def programs(task: Task) -> list[Candidate]:
    return [default_candidate(task, derive(task)), NAIVE]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measurer]:
    """A board with numpy, and without anything else."""
    with opened(address=f"popen://{boards.bare_python(tmp_path_factory.mktemp('board'))}") as measurer:
        yield measurer


def narrow(dtype: str) -> Task:
    a = te.placeholder((24, 40), dtype=dtype, name="A")
    return Task([a, te.compute(a.shape, lambda i, j: a[i, j] + a[i, j], name="B")], HERE)


def large() -> Task:
    a = te.placeholder((300, 700), name="A")
    return Task([a, te.compute(a.shape, lambda i, j: te.exp(a[i, j]) * a[i, j], name="B")], HERE)


def constant() -> Task:
    """Has something to prepare."""
    a, b = te.placeholder((32, 64), name="A"), te.placeholder((64, 96), name="B", constant=True)
    k = te.reduce_axis(64, name="k")
    return Task([a, b, te.compute((32, 96), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")], HERE)


TASKS = {
    "product": lambda: Task(matmul(32, 48, 64), HERE),
    "bfloat16": lambda: narrow("bfloat16"),
    "float16": lambda: narrow("float16"),
    "int8": lambda: narrow("int8"),
    "larger than what is sent whole": large,
    "prepared": constant,
}


@pytest.mark.parametrize("name", TASKS)
def test_a_board_without_a_compiler_runs_checks_and_times(bare: Measurer, name: str) -> None:
    task = TASKS[name]()
    found = list(bare.measure(task, programs(task)))
    assert [(m.outcome, m.error) for m in found] == [(Outcome.OK, "")] * 2
    assert all(m.checked and m.latency and m.machine.startswith("popen://") for m in found)


def test_threads_run_there(tmp_path: Path) -> None:
    task = Task(matmul(64, 64, 64), replace(HERE, threads=2))
    with opened(task.target, address=f"popen://{boards.bare_python(tmp_path)}") as measurer:
        assert [(m.outcome, m.error) for m in measurer.measure(task, programs(task))] == [(Outcome.OK, "")] * 2


def test_wrong_programs_are_found_out(bare: Measurer) -> None:
    """Those of another task with the same arrays."""
    for task, other in ((Task(matmul(16, 16, 16), HERE), _other_product()), (large(), _other_large())):
        built = next(bare._builder.build(other, [NAIVE]))
        (ran,) = bare._lanes[0].runner.run(task, [built], None)  # type: ignore[list-item]
        assert ran.verdict.outcome is Outcome.WRONG_RESULT
        assert "are wrong" in ran.verdict.error


def _other_product() -> Task:
    a, b = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis(16, name="k")
    return Task([a, b, te.compute((16, 16), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")], HERE)


def _other_large() -> Task:
    """Differs in one element of 210,000."""
    a = te.placeholder((300, 700), name="A")
    last = 300 * 700 - 1

    def value(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.exp(a[i, j]) * a[i, j] + te.if_then_else(i * 700 + j >= last, 1.0, 0.0)

    return Task([a, te.compute(a.shape, value, name="B")], HERE)


@pytest.mark.parametrize(
    ("lie", "outcome", "words"),
    [
        ("outputs", Outcome.WRONG_RESULT, "are wrong"),
        ("no outputs", Outcome.CRASH, "with another number of bytes"),
        ("negative", Outcome.CRASH, "the board says that latency is -1.0 seconds"),
        ("no number", Outcome.CRASH, "latency is nan"),
        ("text", Outcome.CRASH, "latency is '0.001'"),
        ("forever", Outcome.CRASH, "latency is 1000000000.0"),
        ("zero", Outcome.CRASH, "latency is 0.0"),
        ("rubbish", Outcome.CRASH, "the board sent ['rubbish'"),
        ("dies", Outcome.CRASH, "its process on the board"),
        ("noise", Outcome.RUN_TIMEOUT, "not done after"),
        ("hangs", Outcome.RUN_TIMEOUT, "not done after"),
    ],
)
def test_a_board_that_lies_dies_hangs_or_sends_rubbish_costs_records(
    monkeypatch: pytest.MonkeyPatch, lie: str, outcome: Outcome, words: str
) -> None:
    monkeypatch.setattr(connection, "GRACE", 0.5)
    settings = replace(SETTINGS, check_seconds=1.0)
    task = Task(matmul(16, 16, 16), HERE)
    with opened(bootstrap=boards.LIAR.format(lie=lie), settings=settings) as measurer:
        (found,) = measurer.measure(task, [NAIVE])
    assert (found.outcome, found.latency) == (outcome, None)
    assert words in found.error


def test_a_board_that_is_gone_is_waited_for_and_then_told() -> None:
    task = Task(matmul(16, 16, 16), HERE)
    with opened() as measurer:
        board = measurer._lanes[0].runner
        (first,) = measurer.measure(task, [NAIVE])
        board._spec = "popen//python=/nowhere/python"  # type: ignore[attr-defined]
        board.close()
        found = measurer.measure(task, programs(task))
        lost = next(found)
        assert lost.outcome is Outcome.CRASH
        assert "was lost while it had this program" in lost.error
        with pytest.raises(TuningError, match="no machine that times programs came back within 0 s"):
            next(found)
    assert first.outcome is Outcome.OK


def test_what_a_board_is_to_compute_has_a_limit() -> None:
    """It is computed here, by numpy, which may take for ever."""
    with (
        opened(settings=replace(SETTINGS, prepare_seconds=0.0)) as measurer,
        pytest.raises(TuningError, match=r"the reference output of task .* cannot be computed: not done after"),
    ):
        list(measurer.measure(Task(matmul(512, 512, 512), HERE), [NAIVE]))


def test_a_board_that_cannot_be_reached_is_one_sentence() -> None:
    with pytest.raises(TuningError, match="the board popen:///nowhere/python cannot be reached"):
        opened(address="popen:///nowhere/python")


def test_over_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boards.fake_ssh(tmp_path)
    python = boards.bare_python(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    task = Task(matmul(32, 48, 64), HERE)
    with opened(address=f"ssh://pi@board:2222/{python}") as measurer:
        found = list(measurer.measure(task, programs(task)))
    assert [(m.outcome, m.machine) for m in found] == [(Outcome.OK, f"ssh://pi@board:2222/{python}")] * 2
    assert "-o BatchMode=yes -o ConnectTimeout=30 -p 2222 pi@board" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "address",
    [
        "ssh://",
        "ssh://-oProxyCommand=x",
        "ssh://a b",
        "ssh://pi@board;reboot",
        "http://board",
        "ssh://board/py thon",
        "popen://a;b",
    ],
)
def test_addresses_are_not_commands(address: str) -> None:
    with pytest.raises(TargetError, match="is no board; give ssh://user@host"):
        execnet_spec(address)


@pytest.mark.skipif(emulated.obstacle() is not None, reason=emulated.obstacle() or "")
@pytest.mark.parametrize("kind", ["product", "convolution"])
def test_an_aarch64_board_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Machine code for AArch64, which qemu runs."""
    monkeypatch.setattr(runner, "open_workers", partial(open_workers, bootstrap=boards.QEMU_BOARD))
    address = f"popen://{sys.executable}"
    target = replace(resolve("aarch64"), threads=1)
    task = Task(matmul(24, 32, 40), target) if kind == "product" else _convolution(target)
    tuned = al.tune(task, trials=16, measurer=address, database=tmp_path / "t.db", progress=False)
    assert [trial.error for trial in tuned.history if trial.outcome.failed] == []
    again = al.tune(task, trials=16, measurer=address, database=tmp_path / "t.db", progress=False)
    assert again.restored == 16
    with Database(tmp_path / "t.db") as database:
        measured = [record.measurement for record in database.records()]
        assert {m.machine for m in measured} == {address}
        assert database.best(task.key, target.key) is None, "it says nothing of this machine"
    assert all(m.checked for m in measured if m.outcome is Outcome.OK)


def _convolution(target: Target) -> Task:
    x, w = te.placeholder((1, 4, 10, 10), name="X"), te.placeholder((8, 4, 3, 3), name="W")
    return Task([x, w, conv(x, w)], target)


def test_two_boards_share_the_candidates() -> None:
    address = f"popen://{sys.executable}"
    task = Task(matmul(32, 48, 64), HERE)
    with opened(address=f"{address},{address}", settings=replace(SETTINGS, alike=1e9, check_seconds=60.0)) as measurer:
        found = list(measurer.measure(task, programs(task) * 4))
        sessions = [lane.runner._session for lane in measurer._lanes]  # type: ignore[attr-defined]
    assert [m.error for m in found if m.outcome.failed] == []
    assert all(session.jobs for session in sessions)
