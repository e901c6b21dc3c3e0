"""A record can be done again by the command that it names."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ansorlite.errors import TargetError
from ansorlite.measure.replay import main, recorded_task
from ansorlite.records import Database, Measurement, Outcome
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.target import GPUS, LEVELS, host, resolve
from ansorlite.task import Task
from tests.unit.measure.tasks import matmul


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [(), ("--here",)])
def test_the_command_of_a_record_does_it_again(tmp_path: Path, options: tuple[str, ...]) -> None:
    with Database(tmp_path / "db") as database:
        identity = database.add(matmul(8), Measurement(NAIVE, Outcome.CRASH, error="SIGSEGV\ndetails", version="0"))
        command = database.record(identity).command
    assert command[0] == "python"
    done = run(*command[1:], "--json", *options)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["recorded"]["outcome"] == "crash"
    assert result["now"]["outcome"] == "ok"
    assert result["now"]["latency"] > 0


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def test_it_says_what_went_wrong_and_shows_the_loops(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database:
        database.add(matmul(8), Measurement(NAIVE, Outcome.OK, latency=1.0, checked=True))
        database.add(matmul(8), Measurement(Candidate("of another version"), Outcome.OK, latency=1.0, checked=True))
    shown = invoke(str(tmp_path / "db"), "1", "--loops", "--here").stdout
    assert "recorded:  ok, 1.000e+00 s" in shown
    assert "now:       ok, " in shown
    assert "for " in shown
    gone = invoke(str(tmp_path / "db"), "2").stdout
    assert "now:       compile_error: ScheduleError: the trace is not what a trace prints" in gone


def test_a_record_that_is_not_there(tmp_path: Path) -> None:
    with Database(tmp_path / "db"):
        pass
    done = invoke(str(tmp_path / "db"), "1")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")
    assert "has no record 1" in done.stderr


def test_the_target_is_the_records_own(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database:
        computation = matmul(8).dag
        for target in (resolve("emulated"), GPUS["a100"], replace(GPUS["a100"], cpu="sm_79"), LEVELS["x86-64-v2"]):
            database.add(Task([*computation.inputs, *computation.outputs], target), Measurement(NAIVE, Outcome.OK, latency=1.0))
        records = [database.record(number) for number in (1, 2, 3, 4)]
        assert recorded_task(database, records[0]).target == resolve("emulated")
        assert recorded_task(database, records[0], threads=1).target.threads == 1
        assert recorded_task(database, records[1]).target == GPUS["a100"]
        with pytest.raises(TargetError, match=r"the record is of cuda nvptx64 sm_79 .*A100.*, which is not here"):
            recorded_task(database, records[2])
        assert recorded_task(database, records[3]).target.cpu in ("x86-64-v2", host().cpu)
    shown = invoke(str(tmp_path / "db"), "1", "--here").stdout
    assert "now:       ok, " in shown
    assert "another machine" not in shown
