"""Tuning that is killed at random instants: its database stays whole, loses nothing, repeats nothing, and no worker is left."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from ansorlite.records.database import Database
from ansorlite.records.measurement import Record
from benchmarks.reliability.results import Attempt, Findings
from benchmarks.reliability.workload import KERNELS, MATMUL

KILLS: Final = "kills"
#: Of one tuning, which goes on after each.
_OF_ONE: Final = 6
#: Seconds until something that must happen counts as not happening.
_PATIENCE: Final = 180.0
#: Environment variable that marks the processes of one attempt.
_MARK: Final = "ANSORLITE_RELIABILITY_ATTEMPT"


def attempt_with(kills: int = _OF_ONE) -> Attempt:
    """An attempt that kills one tuning so many times."""
    return partial(_attempt, kills=kills)


def _attempt(number: int, folder: Path, kills: int) -> Findings:
    rng = np.random.default_rng(number)
    (folder / "kernels.py").write_text(KERNELS)
    path = folder / "t.db"
    mark = f"{number}-{os.getpid()}-{time.time_ns()}"
    failures: list[str] = []
    known: list[Record] = []
    for kill in range(kills):
        process = _start(folder, mark, 100_000)
        try:
            seen = _wait(path, process, len(known) + int(rng.integers(0, 7)), rng)
        finally:
            process.kill()
            _, told = process.communicate()
        problems = [f"it had ended by itself: {told[-2000:]}"] if process.returncode != -9 else []
        if (left := _left(mark)) != 0:
            problems.append(f"{left} of its processes were still there after {_PATIENCE:.0f} s")
        known, found = _examined(path, seen)
        failures += [f"attempt {number}, kill {kill}: {problem}" for problem in (*problems, *found)]
    total = len(known) + 3
    last = _start(folder, mark, total)
    out, told = last.communicate(timeout=_PATIENCE * 10)
    if last.returncode != 0:
        failures.append(f"attempt {number}: tuning could not go on: {told[-2000:]}")
    else:
        numbers = json.loads(out)
        if (numbers["restored"], numbers["trials"]) != (len(known), total):
            failures.append(f"attempt {number}: {len(known)} records were there, but it went on from {numbers}")
    return Findings({KILLS: kills}, tuple(failures), {"records": float(len(known))})


def _start(folder: Path, mark: str, trials: int) -> subprocess.Popen[str]:
    words = ["tune", *MATMUL, "--trials", str(trials), "--database", "t.db", "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "ansorlite", *words],
        cwd=folder,
        env={**os.environ, _MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait(path: Path, process: subprocess.Popen[str], count: int, rng: np.random.Generator) -> list[Record]:
    """Until a random instant: while it starts, or after the database had so many records. What it had then."""
    if rng.random() < 0.25:
        time.sleep(rng.uniform(0, 3))
        return _records(path)
    deadline = time.monotonic() + _PATIENCE
    while len(seen := _records(path)) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(rng.uniform(0, 0.5))
    return seen


def _records(path: Path) -> list[Record]:
    if not path.exists():
        return []
    with Database(path, create=False) as database:
        return database.records()


def _examined(path: Path, seen: list[Record]) -> tuple[list[Record], list[str]]:
    """The records, and what is wrong with them; ``seen`` were there before the kill."""
    if not path.exists():
        return [], (["the database is gone"] if seen else [])
    with closing(sqlite3.connect(path)) as connection:
        (state,) = connection.execute("PRAGMA integrity_check").fetchone()
    problems = [] if state == "ok" else [f"the database is damaged: {state}"]
    records = _records(path)
    if records[: len(seen)] != seen:
        problems.append(f"of {len(seen)} records that were there, some are lost or changed")
    keys = [record.measurement.key for record in records]
    if len(set(keys)) < len(keys):
        problems.append(f"{len(keys) - len(set(keys))} programs were measured twice")
    return records, problems


def _left(mark: str) -> int:
    """How many processes with the mark do not end."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        left = sum(_marked(process, mark) for process in psutil.process_iter())
        if left == 0 or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def _marked(process: psutil.Process, mark: str) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE and process.environ().get(_MARK) == mark)
    except psutil.Error:
        return False
