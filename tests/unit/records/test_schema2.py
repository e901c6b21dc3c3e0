"""Databases of schemas 1 and 2: what they hold stays what it is."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sqlite3
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from ansorlite.loops.printer import text
from ansorlite.records import Database, Measurement, import_lines
from ansorlite.records.machine import this_machine
from ansorlite.records.older.programs import OldPrograms
from ansorlite.sketch.candidate import NAIVE
from ansorlite.sketch.program import lower
from ansorlite.task import Task
from ansorlite.te.serialize import dump
from tests.unit.records import schema2_cases
from tests.unit.records.samples import measurement, task
from tests.unit.records.test_damage import DAMAGE

RECORDED = [json.loads(line) for line in Path(__file__).with_name("schema2.jsonl").read_text().splitlines()]

#: The tables of schema 2.
TABLES = """
    CREATE TABLE tasks (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, dag TEXT NOT NULL, first_seen REAL NOT NULL);
    CREATE TABLE measurements (
        id INTEGER PRIMARY KEY, task INTEGER NOT NULL REFERENCES tasks (id), target TEXT NOT NULL, sketch TEXT NOT NULL,
        row TEXT NOT NULL, key TEXT NOT NULL, outcome TEXT NOT NULL, latency REAL, checked INTEGER NOT NULL, error TEXT NOT NULL,
        build_seconds REAL NOT NULL, run_seconds REAL NOT NULL, check_seconds REAL NOT NULL, version TEXT NOT NULL,
        time REAL NOT NULL, seal TEXT NOT NULL DEFAULT '', UNIQUE (task, target, sketch, row, time)
    );
    CREATE INDEX by_latency ON measurements (task, target, outcome, checked, latency);
    PRAGMA application_id = 1634628463;
    PRAGMA user_version = 2;
"""

Named = tuple[str, list[int]]


@pytest.mark.parametrize("case", [case for case, _ in schema2_cases.RECORDED])
def test_a_program_that_was_recorded_is_the_same_program(case: str) -> None:
    for target, sketches in groupby((r for r in RECORDED if r["case"] == case), key=lambda recorded: recorded["target"]):
        one = schema2_cases.task(case, target)
        old = OldPrograms(one)
        for sketch in sketches:
            for row, digest in sketch["programs"]:
                candidate = old.candidate(sketch["signature"], row)
                assert candidate is not None
                assert hashlib.sha256(text(lower(one, candidate)).encode()).hexdigest()[:16] == digest


def test_what_no_sketch_has_is_no_program() -> None:
    old = OldPrograms(task())
    ((signature, sketch),) = old.sketches.items()
    first = [0] * len(sketch.columns)
    assert old.candidate(signature, first) is not None
    assert old.candidate("naive", []) == NAIVE
    wrong = [[], [*first, 0], [-1, *first[1:]], [1 << 40, *first[1:]]]
    assert all(old.candidate(signature, row) is None for row in wrong)
    assert old.candidate("naive", [0]) is None
    assert old.candidate("0" * 12, first) is None


def seal(one: Task, named: Named, made: Measurement, target: str | None = None) -> str:
    """As it was made under schema 2."""
    said = json.dumps([one.key, target or one.target.key, *named, made.outcome.value, made.latency, made.checked, made.when])
    return hmac.digest(this_machine().key, said.encode(), "sha256").hex()[:32]


def cells(named: Named, made: Measurement, sealed: str) -> dict[str, object]:
    return {
        "sketch": named[0], "row": json.dumps(named[1]), "key": made.key, "outcome": made.outcome.value, "latency": made.latency,
        "checked": int(made.checked), "error": made.error, "build_seconds": made.seconds.build, "run_seconds": made.seconds.run,
        "check_seconds": made.seconds.check, "version": made.version, "time": made.when, "seal": sealed,
    }  # fmt: skip


def old_database(path: Path, one: Task, rows: list[tuple[str, dict[str, object]]]) -> None:
    """A database of schema 2 with measurements of a task on targets."""
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLES)
        connection.execute("INSERT INTO tasks VALUES (1, ?, ?, 1.0)", (one.key, json.dumps(dump(one.dag))))
        for target, row in rows:
            columns = ", ".join(["task", "target", *row])
            places = ", ".join("?" * (len(row) + 2))
            connection.execute(f"INSERT INTO measurements ({columns}) VALUES ({places})", (1, target, *row.values()))
    connection.close()


def a_program(one: Task) -> Named:
    ((signature, sketch),) = OldPrograms(one).sketches.items()
    return signature, [len(column.values) - 1 for column in sketch.columns]


def mixed_database(path: Path) -> Task:
    """Three records that can be converted, and four that cannot."""
    one = task()
    named, here = a_program(one), task().target.key
    made = measurement(1)
    old_database(
        path,
        one,
        [
            (here, cells(named, made, seal(one, named, made))),
            (here, cells(("naive", []), measurement(2), "")),
            (here, cells(("0" * 12, [1, 2]), measurement(3), "")),
            ("llvm abacus beads v1 t1", cells(named, measurement(4), "")),
            (here, {**cells(named, measurement(5), ""), "row": "[1, 'two']"}),
            (here, {**cells(named, measurement(6), ""), "latency": -1.0, "time": 3.0}),
            (here, {**cells(named, measurement(7), "f" * 32), "time": 2.0}),
        ],
    )
    return one


def test_what_can_be_derived_is_converted_and_the_rest_is_kept_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = mixed_database(tmp_path / "db")
    expected = OldPrograms(one).candidate(*a_program(one))
    for _ in range(2):
        with Database(tmp_path / "db") as database:
            assert [record.id for record in database.records()] == [1, 2, 7]
            first, second, third = (record.measurement for record in database.records())
            assert first.candidate == third.candidate == expected
            assert second.candidate == NAIVE
            assert first.latency == measurement(1).latency
            assert [m.here for m in (first, second, third)] == [True, False, False]
            assert [record.seal for record in database.records()][1:] == ["", ""]
            database.warn()
    (told,) = [record.getMessage() for record in caplog.records]
    assert "4 of 7 measurements that an older ansorlite made could not be converted" in told
    assert "2 damaged, 1 of a program that today's rules do not derive, 1 for a machine that this one knows nothing of" in told
    with sqlite3.connect(tmp_path / "db") as connection:
        kept = connection.execute("SELECT id, sketch, row, obstacle FROM unconverted ORDER BY id").fetchall()
    connection.close()
    assert [row[0] for row in kept] == [3, 4, 5, 6]
    assert kept[0] == (3, "0" * 12, "[1, 2]", "of a program that today's rules do not derive")


def test_schema_1_had_no_seals_so_nobody_knows_who_measured(tmp_path: Path) -> None:
    one = task()
    old_database(tmp_path / "db", one, [(one.target.key, cells(a_program(one), measurement(1), ""))])
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("ALTER TABLE measurements DROP COLUMN seal")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    for _ in range(2):
        with Database(tmp_path / "db") as database:
            (record,) = database.records()
            assert record.measurement == replace(measurement(1), candidate=record.measurement.candidate)
            assert record.measurement.candidate == OldPrograms(one).candidate(*a_program(one))
            assert not record.measurement.here
    with Database(tmp_path / "db") as database:
        database.add(one, measurement(2))
        assert [record.measurement.here for record in database.records()] == [False, True]


@pytest.mark.parametrize("column", ["task", "target", *cells(("", []), measurement(), "")])
def test_damaged_measurements_are_kept(tmp_path: Path, column: str) -> None:
    one = task()
    named = a_program(one)
    rows = [{**cells(named, measurement(1), ""), "time": 1.0 + number} for number in range(len(DAMAGE) + 1)]
    old_database(tmp_path / "db", one, [(one.target.key, row) for row in rows])
    with sqlite3.connect(tmp_path / "db") as connection:
        for number, value in enumerate(DAMAGE.values(), 1):
            connection.execute(f"UPDATE measurements SET {column} = {value} WHERE id = {number}")
    connection.close()
    _open_all(tmp_path / "db", len(rows))


@pytest.mark.parametrize("column", ["key", "dag", "first_seen"])
def test_measurements_of_damaged_tasks_are_kept(tmp_path: Path, column: str) -> None:
    one = task()
    named = a_program(one)
    old_database(tmp_path / "db", one, [])
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute(f"UPDATE tasks SET id = {len(DAMAGE) + 1}")
        for number, value in enumerate(DAMAGE.values(), 1):
            said = {"id": f"{number}", "key": f"'{number}'", "dag": "'{}'", "first_seen": "1.0", column: value}
            connection.execute(f"INSERT INTO tasks ({', '.join(said)}) VALUES ({', '.join(said.values())})")
        for number in range(1, len(DAMAGE) + 2):
            row = {"task": number, "target": one.target.key, **cells(named, measurement(1), "")}
            connection.execute(
                f"INSERT INTO measurements ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
            )
    connection.close()
    _open_all(tmp_path / "db", len(DAMAGE) + 1)


def _open_all(path: Path, count: int) -> None:
    """Of so many measurements the last is whole, and none is gone."""
    with Database(path) as database:
        assert [record.id for record in database.records()][-1] == count
        database.warn()
    with sqlite3.connect(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = [id_ for table in tables - {"tasks"} for (id_,) in connection.execute(f"SELECT id FROM {table}")]
    connection.close()
    assert sorted(found) == list(range(1, count + 1))


def test_the_same_program_by_two_names_at_one_time_is_there_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = task()
    named = a_program(one)
    rows = [{**cells(named, measurement(n), ""), "row": row} for n, row in ((1, json.dumps(named[1])), (2, f"{named[1]} "))]
    old_database(tmp_path / "db", one, [(one.target.key, row) for row in rows])
    with Database(tmp_path / "db") as database:
        assert [record.id for record in database.records()] == [1]
    assert "1 of 2 measurements" in caplog.text
    assert "1 there twice" in caplog.text


def test_nothing_is_changed_where_conversion_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed_database(tmp_path / "db")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ansorlite.records.older.conversion.converted", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Database(tmp_path / "db")
    with sqlite3.connect(tmp_path / "db") as connection:
        assert connection.execute("SELECT count(sketch) FROM measurements").fetchone() == (7,)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    connection.close()
    with Database(tmp_path / "db") as database:
        assert len(database.records()) == 3


def test_a_file_that_may_only_be_read_is_converted_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed_database(tmp_path / "db")
    before = (tmp_path / "db").read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with Database(tmp_path / "db", create=False) as database:
        assert [record.id for record in database.records()] == [1, 2, 7]
        with pytest.raises(Exception, match="cannot be opened for writing"):
            database.add(task(), measurement(8))
    assert (tmp_path / "db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["db"]


@pytest.mark.parametrize("threads", [1, 3])
def test_records_of_another_number_of_threads_are_converted(tmp_path: Path, threads: int) -> None:
    one = Task(task().dag, "x86-64-v3")
    target = f"{one.target.key.rpartition(' t')[0]} t{threads}"
    old_database(tmp_path / "db", one, [(target, cells(("naive", []), measurement(1), ""))])
    with Database(tmp_path / "db") as database:
        assert [record.measurement.candidate for record in database.records(target=target)] == [NAIVE]


def test_lines_of_an_older_schema_are_imported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = task()
    named, made = a_program(one), measurement(1)
    lines = [{"kind": "task", "schema": 1, "key": one.key, "dag": dump(one.dag), "first_seen": 1.0}]
    for program, sealed in ((named, seal(one, named, made)), (("0" * 12, []), ""), (("naive", []), "f" * 32)):
        facts = {**cells(program, made, sealed), "row": program[1], "checked": True}
        lines.append({"kind": "measurement", "schema": 1, "task": one.key, "target": one.target.key, **facts})
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, lines)))
    with Database(tmp_path / "db") as database:
        assert import_lines(database, tmp_path / "lines") == 2
        assert import_lines(database, tmp_path / "lines") == 0
        first, second = (record.measurement for record in database.records())
        assert (first.candidate, first.here) == (OldPrograms(one).candidate(*named), True)
        assert (second.candidate, second.here) == (NAIVE, False)
    assert "1 of 3 measurements that an older ansorlite made could not be converted" in caplog.text
    assert "the file still has them" in caplog.text
