"""Which program ``al.compile`` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.default import default_candidate
from ansorlite.sketch.derivation import derive
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
    assert "1 records of another version do not apply" in caplog.text


def test_a_database_that_is_not_there_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kernel = al.compile(TASK, tmp_path / "nowhere.db")
    assert "there is no tuning database at" in caplog.text
    assert kernel.inputs[0].shape == (16, 16)
    assert not (tmp_path / "nowhere.db").exists()
