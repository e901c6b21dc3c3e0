"""What goes into a database comes out of it, and the best is the best that may be believed."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from ansorlite.errors import RecordsError
from ansorlite.records import Database, Outcome
from ansorlite.records.hints import hints
from ansorlite.te.serialize import load
from tests.unit.records.samples import candidate, failure, measurement, task


def test_a_measurement_comes_back_as_it_was(tmp_path: Path) -> None:
    stored = failure(3, 1, 4, outcome=Outcome.CRASH, error="SIGSEGV\nand more")
    with Database(tmp_path / "db") as database:
        identity = database.add(task(), stored)
    with Database(tmp_path / "db") as database:
        record = database.record(identity)
        assert record.measurement == stored
        assert (record.task, record.target) == (task().key, task().target.key)
        assert record.command[-2:] == (str(tmp_path / "db"), str(identity))


def test_the_task_comes_back(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database:
        database.add(task(5), measurement(1))
        database.add(task(5), measurement(2))
        database.add(task(6), measurement(1))
        assert [load(entry.dag).key for entry in database.tasks()] == [task(5).key, task(6).key]
        assert load(database.task(task(6).key).dag).key == task(6).key


def test_best_is_the_fastest_checked_one_of_that_task_and_target(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database:
        assert database.best(task().key, task().target.key) is None
        database.add(task(), measurement(1, latency=3.0))
        database.add(task(), measurement(2, latency=2.0))
        database.add(task(), measurement(3, latency=1.0, checked=False))
        database.add(task(), measurement(4, latency=0.5, outcome=Outcome.EARLY_STOPPED, checked=False))
        database.add(task(), failure(5, outcome=Outcome.WRONG_RESULT, error="1 of 8 elements"))
        database.add(task(99), measurement(6, latency=0.1))
        assert database.best(task().key, task().target.key) == measurement(2, latency=2.0)
        assert database.best(task().key, "another machine") is None


def test_filters_counts_and_targets(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database:
        database.add(task(1), measurement(1))
        database.add(task(2), measurement(2))
        database.add(task(2), failure(3, outcome=Outcome.COMPILE_ERROR, error="no"))
        found = [record.measurement.candidate for record in database.records(task=task(2).key)]
        assert found == [candidate(2), candidate(3)]
        assert [r.measurement.candidate for r in database.records(outcome=Outcome.OK)] == [candidate(1), candidate(2)]
        assert [r.id for r in database.records(since=1, limit=1)] == [2]
        assert database.outcomes() == {Outcome.OK: 2, Outcome.COMPILE_ERROR: 1}
        assert database.outcomes(task=task(1).key) == {Outcome.OK: 1}
        assert database.targets(task(1).key) == (task().target.key,)
        assert database.targets(task(7).key) == ()


def test_a_database_may_live_in_memory() -> None:
    with Database(":memory:") as database:
        database.add(task(), measurement(1))
        assert len(database.records()) == 1
    assert not Path(":memory:").exists()


def test_unknown_ids_and_tasks_are_errors(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database:
        with pytest.raises(RecordsError, match="has no record 7"):
            database.record(7)
        with pytest.raises(RecordsError, match="has no task"):
            database.task("nothing")


def test_a_database_that_was_closed_or_is_another_threads(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database, ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(database.tasks)
        assert "serves the thread that opened it; open one in each thread" in str(elsewhere.exception())
    with pytest.raises(RecordsError, match="this database was closed; open it again"):
        database.tasks()


def test_what_another_machine_ran_is_ours_but_not_from_here(tmp_path: Path) -> None:
    there = replace(measurement(1, latency=1.0), machine="ssh://pi@board")
    with Database(tmp_path / "db") as database:
        database.add(task(), there)
        database.add(task(), measurement(2, latency=2.0))
        first, second = (record.measurement for record in database.records())
        assert (first, first.ours, first.here) == (there, True, False)
        assert (second.ours, second.here) == (True, True)
        assert database.best(task().key, task().target.key) == second


def test_the_machine_is_part_of_what_is_sealed(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database:
        database.add(task(), replace(measurement(1), machine="ssh://pi@board"))
        database._connection.execute("UPDATE measurements SET machine = ''")
        (record,) = database.records()
        assert not record.measurement.ours


def test_what_the_machine_could_do_at_that_time_is_kept_and_sealed(tmp_path: Path) -> None:
    known = replace(measurement(1), peak=1.9e11)
    with Database(tmp_path / "db") as database:
        database.add(task(), known)
        (record,) = database.records()
        assert record.measurement.peak == 1.9e11
        assert record.measurement.ours
        database._connection.execute("UPDATE measurements SET peak = 1e12")
        (record,) = database.records()
        assert not record.measurement.ours
        database._connection.execute("UPDATE measurements SET peak = 'high'")
        assert database.records() == []


def test_a_database_of_schema_4_knows_no_peaks(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with Database(path) as database:
        database.add(task(), replace(measurement(1), machine="there"))
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE measurements DROP COLUMN peak")
        connection.execute("PRAGMA user_version = 4")
    with Database(path, create=False) as database:
        database.add(task(), replace(measurement(2), peak=1e9))
        assert [(r.measurement.peak, r.measurement.ours) for r in database.records()] == [(0.0, True), (1e9, True)]


def test_machines_of_other_speeds_are_compared_by_what_they_could_do() -> None:
    fast = replace(measurement(1, latency=1.0), machine="fast", peak=4e11)
    slow = replace(measurement(2, latency=2.0), machine="slow", peak=1e11)
    assert hints([fast, slow], lambda _: True) == [slow.candidate, fast.candidate]
    assert hints([fast, replace(slow, peak=0.0)], lambda _: True) == [fast.candidate, slow.candidate]


def test_a_database_of_schema_3_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with Database(path) as database:
        database.add(task(), measurement(1))
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE measurements DROP COLUMN machine")
        connection.execute("ALTER TABLE measurements DROP COLUMN peak")
        connection.execute("PRAGMA user_version = 3")
    with Database(path, create=False) as database:
        database.add(task(), replace(measurement(2), machine="there"))
        assert [(r.measurement.machine, r.measurement.ours) for r in database.records()] == [("", True), ("there", True)]
