"""Files that are not what they should be, and writers that die or meet."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ansorlite.errors import RecordsError
from ansorlite.records import Database, export_lines
from ansorlite.records.rows import COLUMNS
from ansorlite.report.histories import histories
from ansorlite.sketch.candidate import Candidate
from tests.unit.records.samples import candidate, measurement, task


def writer(path: Path, seed: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.unit.records.writer", str(path), str(seed), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_killed_writer_loses_nothing_it_had_finished(tmp_path: Path) -> None:
    path = tmp_path / "db"
    process = writer(path, 0, 1_000_000)
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(50)]
    process.send_signal(signal.SIGKILL)
    told += process.stdout.readlines()
    assert process.wait() == -signal.SIGKILL
    finished = [int(line.split()[1]) for line in told if line.endswith("\n")]
    with Database(path) as database:
        found = [record.measurement.candidate for record in database.records()]
        assert found[: len(finished)] == [candidate(0, number) for number in finished]
        assert len(found) <= len(finished) + 1
        assert database.add(task(), measurement(1, 0)) > 0


def test_two_writers_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "db"
    processes = [writer(path, seed, 200) for seed in range(2)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with Database(path) as database:
        found = {record.measurement.candidate for record in database.records()}
        assert found == {candidate(seed, number) for seed in range(2) for number in range(200)}
        assert len(database.tasks()) == 1


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, not a database " * 100)
    with pytest.raises(RecordsError, match="not a tuning database"):
        Database(path)
    assert path.read_text().startswith("these are my notes")


def test_an_sqlite_file_of_another_program_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "db") as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(RecordsError, match="not a tuning database"):
        Database(tmp_path / "db")


def test_tables_whose_description_is_no_text(tmp_path: Path) -> None:
    with Database(tmp_path / "db"):
        pass
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute("UPDATE sqlite_master SET sql = 'CREATE ' || CAST(x'b9ff' AS TEXT) || ' (a)'")
    connection.close()
    with pytest.raises(RecordsError, match="damaged"):
        Database(tmp_path / "db")


def test_a_damaged_name_of_a_table_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with Database(path):
        pass
    content, name = path.read_bytes(), b"tabletaskstasks"
    assert name in content
    path.write_bytes(content.replace(name, b"tabletas\nstasks"))
    with pytest.raises(RecordsError, match=r"damaged \(malformed database schema \(tas s\)"):
        Database(path)


def test_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with Database(path) as database:
        for number in range(300):
            database.add(task(), measurement(number))
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 100] = os.urandom(100)
    path.write_bytes(content)
    with pytest.raises(RecordsError, match="damaged"), Database(path) as database:
        database.records()


#: What SQLite lets stand in any column, whatever its type; as SQL.
DAMAGE = {
    "blob": "x'00fffe'",
    "text that is no UTF-8": "CAST(x'fffe' AS TEXT)",
    "words": "'exploded'",
    "deep JSON": f"'{'[' * 100_000}'",
    "deep JSON that is closed": f"'{'[' * 3000}{']' * 3000}'",
    "infinity": "9e999",
    "less than nothing": "-1",
    "nothing": "0",
    "a great number": "9223372036854775807",
    "a list of the wrong things": "'[1, \"2\", 1e999]'",
    "a list of too great numbers": f"'[1{'0' * 40}]'",
    "escapes": "char(27) || '[2J'",
}
MEASUREMENT_COLUMNS = ("task", "target", *COLUMNS)


def damage(path: Path, table: str, column: str, value: str) -> None:
    """Put ``value`` into the first row."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = {value} WHERE id = 1")
    connection.close()


def read_all(database: Database) -> list[Candidate]:
    """Read the database in every way; the programs of its measurements."""
    found = database.records()
    for one in (task(1), task(2)):
        database.best(one.key, one.target.key)
        assert [r.id for r in database.records(one.key, one.target.key)] == [
            r.id for r in found if (r.task, r.target) == (one.key, one.target.key)
        ]
        database.targets(one.key)
        with contextlib.suppress(RecordsError):
            database.task(one.key)
    database.outcomes()
    for identity in (1, 2, 3):
        with contextlib.suppress(RecordsError):
            database.record(identity)
    for line in export_lines(database):
        json.loads(line)
    histories(database)
    return [record.measurement.candidate for record in found]


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize(
    ("table", "column"),
    [*(("measurements", column) for column in MEASUREMENT_COLUMNS), *(("tasks", c) for c in ("key", "dag", "first_seen"))],
)
def test_a_damaged_row_is_left_out_and_said_once_and_the_others_stay(
    tmp_path: Path, table: str, column: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Database(tmp_path / "db") as database:
        database.add(task(1), measurement(1))
        database.add(task(1), measurement(2))
        database.add(task(2), measurement(3))
    damage(tmp_path / "db", table, column, DAMAGE[kind])
    with Database(tmp_path / "db") as database:
        found = read_all(database)
        database.warn()
        told = [record.getMessage() for record in caplog.records if "damaged rows that are left out" in record.getMessage()]
        database.warn()
    assert found[-1] == candidate(3)  # of another task, and whole
    assert table == "tasks" or candidate(2) in found
    assert caplog.text.count("damaged rows that are left out") == len(told) <= 1
    assert all("\n" not in line and "\x1b" not in line for line in told)
    assert told or len(found) == 3, "left out silently"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("outcome", "'exploded'"),
        ("latency", "0"),
        ("latency", "-1"),
        ("latency", "9e999"),
        ("latency", "NULL"),
        ("trace", "x'00'"),
    ],
)
def test_a_row_that_is_no_measurement_is_named(tmp_path: Path, column: str, value: str, caplog: pytest.LogCaptureFixture) -> None:
    with Database(tmp_path / "db") as database:
        database.add(task(), measurement(1))
    damage(tmp_path / "db", "measurements", column, value)
    with Database(tmp_path / "db") as database:
        assert database.records() == []
        assert database.best(task().key, task().target.key) is None
        with pytest.raises(RecordsError, match=f"record 1 is damaged .its {column} should be"):
            database.record(1)
        database.warn()
    assert f"damaged rows that are left out: 1; the first is record 1: its {column} should be" in caplog.text


def test_a_schema_that_never_was_is_damage(tmp_path: Path) -> None:
    with Database(tmp_path / "db"):
        pass
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("PRAGMA user_version = -3")
    with pytest.raises(RecordsError, match="it says that its schema is -3"):
        Database(tmp_path / "db")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    with Database(tmp_path / "db"):
        pass
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(RecordsError, match=r"newer ansorlite \(schema 99; this one knows 5\); upgrade"):
        Database(tmp_path / "db")


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="is a folder"):
        Database(tmp_path)
    with pytest.raises(RecordsError, match="does not exist"):
        Database(tmp_path / "no" / "db")
    with pytest.raises(RecordsError, match="there is no tuning database"):
        Database(tmp_path / "db", create=False)
    assert not (tmp_path / "db").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody, not even root, may write")
def test_a_file_that_may_not_be_written() -> None:
    with pytest.raises(RecordsError, match="cannot be opened for writing"):
        Database("/proc/tuning.db")


def test_a_file_that_may_only_be_read_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(tmp_path / "db") as database:
        database.add(task(), measurement(1))
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(os, "access", lambda *_: False)  # which root is never told by the file
    with Database(tmp_path / "db", create=False) as database:
        assert database.best(task().key, task().target.key) == measurement(1)
        assert sorted(tmp_path.iterdir()) == before
        with pytest.raises(RecordsError, match="cannot be opened for writing"):
            database.add(task(), measurement(2))


def test_a_lock_that_is_never_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansorlite.records.schema.BUSY_SECONDS", 0.05)
    with Database(tmp_path / "db") as database:
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RecordsError, match="locked"):
            database.add(task(), measurement(1))
        other.execute("ROLLBACK")
        assert database.add(task(), measurement(1)) == 1
