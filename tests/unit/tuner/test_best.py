"""Which program ``al.compile`` takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.runtime.kernel import Origin
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.default import default_candidate
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.rules import RULES
from ansorlite.task import Task
from tests.workloads import matmul

TASK = Task(matmul(16, 16, 16))
SKETCHES = derive(TASK)
DEFAULT = default_candidate(TASK, SKETCHES)
OTHER = Candidate(SKETCHES[0].signature, (0,) * len(SKETCHES[0].holes))


def taken(path: Path, *measurements: Measurement) -> Candidate:
    with Database(path / "t.db") as database:
        for measurement in measurements:
            database.add(TASK, measurement)
        programs = Programs(database)
        candidate = programs.candidate(TASK)
        programs.warn()
    return candidate


def ran(candidate: Candidate, latency: float, checked: bool = True) -> Measurement:
    return Measurement(candidate, Outcome.OK, latency=latency, checked=checked)


def test_the_fastest_checked_program(tmp_path: Path) -> None:
    assert taken(tmp_path, ran(NAIVE, 3.0), ran(DEFAULT, 2.0), ran(OTHER, 1.0)) == OTHER
    assert taken(tmp_path, ran(DEFAULT, 0.5, checked=False)) == OTHER


def test_without_records_a_default(tmp_path: Path) -> None:
    assert taken(tmp_path) == Programs(None).candidate(TASK) == DEFAULT != NAIVE


def test_naive_alone_is_no_reason_to_use_it(tmp_path: Path) -> None:
    assert taken(tmp_path, ran(NAIVE, 3.0)) == DEFAULT


def test_naive_where_the_default_is_known_to_be_slower(tmp_path: Path) -> None:
    assert taken(tmp_path, ran(NAIVE, 3.0), ran(DEFAULT, 4.0)) == NAIVE


def test_records_of_another_version_are_told_and_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert taken(tmp_path, ran(Candidate("gone", (1, 2)), 0.1), ran(OTHER, 1.0)) == OTHER
    assert "1 records of another version" in caplog.text


def test_a_database_that_is_not_there_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kernel = al.compile(TASK, tmp_path / "nowhere.db")
    assert "there is no tuning database at" in caplog.text
    assert kernel.inputs[0].shape == (16, 16)
    assert not (tmp_path / "nowhere.db").exists()


class Counted:
    """A cache in memory that counts its hits."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.hits = 0

    def get(self, key: str) -> bytes | None:
        self.hits += key in self.data
        return self.data.get(key)

    def put(self, key: str, data: bytes) -> None:
        self.data[key] = data


def test_a_program_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Counted()
    a, b = np.random.default_rng(0).random((2, 16, 16), dtype=np.float32)
    first = Programs(None, cache=cache).kernel(TASK)
    assert (cache.hits, len(cache.data)) == (0, 2)
    # Another process finds the default program and its code; neither is worked out again.
    monkeypatch.setattr("ansorlite.sketch.derive", None)
    again = Programs(None, cache=cache).kernel(TASK)
    assert cache.hits == 2
    assert again.source("asm") == first.source("asm")
    np.testing.assert_array_equal(again(a, b), first(a, b))


def test_a_record_whose_program_was_compiled_needs_no_derivation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Counted()
    with Database(tmp_path / "t.db") as database:
        database.add(TASK, ran(OTHER, 0.25))
        Programs(database, cache=cache).kernel(TASK)
        monkeypatch.setattr("ansorlite.sketch.derive", None)
        assert Programs(database, cache=cache).kernel(TASK).origin == Origin(OTHER, 0.25)


def test_programs_of_rules_of_ones_own_are_not_kept() -> None:
    cache = Counted()
    Programs(None, RULES[TASK.target.kind], cache).kernel(TASK)
    assert cache.data == {}


def test_many_programs_are_chosen_and_compiled_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansorlite.best._MANY", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    cache = Counted()
    tasks = [Task(matmul(n, 8, 8)) for n in (4, 5)]
    defaults = [default_candidate(task, derive(task)) for task in tasks]
    programs = Programs(None, cache=cache)
    monkeypatch.setattr("ansorlite.sketch.default_candidate", None)
    monkeypatch.setattr("ansorlite.best.build_candidate", None)
    programs.prepare([*tasks, tasks[0]])
    assert len(cache.data) == 4
    assert [programs.candidate(task) for task in tasks] == defaults
    for task in tasks:
        a, b = (np.random.default_rng(n).random(t.shape, dtype=np.float32) for n, t in enumerate(task.dag.inputs))
        np.testing.assert_allclose(programs.kernel(task)(a, b), a @ b, rtol=1e-5)
