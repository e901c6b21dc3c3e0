"""The command as a process: what it prints where, Ctrl-C, and kill -9."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ansorlite.records.database import Database
from ansorlite.records.measurement import Record

Start = Callable[..., subprocess.Popen[str]]

MATMUL = ("kernels.py:matmul", "--args", 24, 24, 24)
#: Seconds that a machine under load may need; nothing is asserted about time.
PATIENCE = 120


def records(path: Path) -> list[Record]:
    with Database(path, create=False) as database:
        return database.records()


def wait_for_records(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Until the database has so many."""
    deadline = time.monotonic() + PATIENCE
    while not path.exists() or len(records(path)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_stdout_has_one_json_object_and_nothing_else(start: Start) -> None:
    process = start("tune", *MATMUL, "--trials", 3, "--database", "t.db", "--progress", "--json")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["trials"] == 3
    assert out.count("\n") == 1
    assert "this file prints when it is imported" in err
    assert "3/3 trials" in err


def test_a_mistake_ends_with_code_2(start: Start) -> None:
    process = start("tune", "nowhere.onnx", "--json")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("Error: there is no file nowhere.onnx")


def test_a_bug_ends_with_its_traceback(start: Start) -> None:
    process = start("tune", "kernels.py:buggy")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert err.rstrip().endswith("ZeroDivisionError: division by zero")


def test_ctrl_c_keeps_every_record_and_tells_the_best(start: Start, folder: Path) -> None:
    process = start("tune", *MATMUL, "--trials", 100_000, "--database", "t.db", "--json")
    wait_for_records(folder / "t.db", 3, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    told = json.loads(out)
    assert told["interrupted"]
    assert 0 < told["best_latency"] < 1
    assert told["trials"] == len(records(folder / "t.db"))
    assert "Traceback" not in err


def test_kill_9_loses_no_finished_measurement_and_repeats_none(start: Start, folder: Path) -> None:
    path = folder / "t.db"
    process = start("tune", *MATMUL, "--trials", 100_000, "--database", "t.db")
    wait_for_records(path, 5, process)
    process.kill()
    process.communicate()
    before = records(path)
    assert len(before) >= 5
    total = len(before) + 6
    again = start("tune", *MATMUL, "--trials", total, "--database", "t.db", "--json")
    out, err = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, err
    told = json.loads(out)
    assert (told["restored"], told["trials"]) == (len(before), total)
    after = records(path)
    assert after[: len(before)] == before
    assert len(after) == total
    # The last trial may compare the best once more with its rival.
    assert len({record.measurement.key for record in after[:-1]}) == total - 1
