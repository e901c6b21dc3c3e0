"""The tables of the database file, and how one is opened: every way that can fail is one :class:`RecordsError`."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ansorlite.errors import RecordsError
from ansorlite.records import older

#: Raised by one whenever an older ansorlite could not read what a newer one writes.
VERSION: Final = 5

#: Marks the file as ours ("anso").
APPLICATION: Final = 0x616E736F

#: Seconds that one tuner waits for another one's transaction. Transactions are single rows, milliseconds long.
BUSY_SECONDS: Final = 30.0

_TASKS: Final = """
    CREATE TABLE tasks (
        id         INTEGER PRIMARY KEY,
        key        TEXT NOT NULL UNIQUE,    -- ComputeDAG.key
        dag        TEXT NOT NULL,           -- te.serialize.dump, as JSON
        first_seen REAL NOT NULL            -- Unix time, seconds
    )
    """
_MEASUREMENTS: Final = (
    """
    CREATE TABLE measurements (
        id            INTEGER PRIMARY KEY,
        task          INTEGER NOT NULL REFERENCES tasks (id),
        target        TEXT NOT NULL,        -- Target.key
        trace         TEXT NOT NULL,        -- Candidate.trace
        key           TEXT NOT NULL,        -- of the program: digest of the loops that run, hex
        outcome       TEXT NOT NULL,        -- Outcome.value
        latency       REAL,                 -- seconds
        checked       INTEGER NOT NULL,     -- 0 or 1
        error         TEXT NOT NULL,
        build_seconds REAL NOT NULL,
        run_seconds   REAL NOT NULL,
        check_seconds REAL NOT NULL,
        version       TEXT NOT NULL,
        time          REAL NOT NULL,        -- Unix time, seconds
        seal          TEXT NOT NULL DEFAULT '',  -- of the machine that wrote it; empty if that is not known
        machine       TEXT NOT NULL DEFAULT '',  -- that ran the program; empty: the one that wrote it
        peak          REAL NOT NULL DEFAULT 0,   -- float32 operations a second that it could do at that time; 0: not known
        UNIQUE (task, target, trace, time)   -- what makes an import idempotent
    )
    """,
    "CREATE INDEX by_latency ON measurements (task, target, outcome, checked, latency)",
)

#: The oldest schema that becomes today's; it had no seals.
_OLDEST: Final = 1

#: The first that has programs as traces, and the first that names machines.
_TRACES: Final = 3
_MACHINES: Final = 4

#: What sqlite3 says of a mistake of the caller's -> what we say.
_MISUSES: Final = {
    "closed database": "this database was closed; open it again",
    "same thread": "a Database serves the thread that opened it; open one in each thread, or give its path",
}


@contextlib.contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn what sqlite3 raises about the file at ``path`` into a :class:`RecordsError`."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        misuse = next((told for what, told in _MISUSES.items() if what in str(error)), None)
        if misuse is None:
            raise
        raise RecordsError(f"{path}: {misuse}") from error
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        raise RecordsError(f"{path}: {_explain(error)}") from error
    except UnicodeDecodeError as error:  # sqlite3 quotes the file in an error of its own, as if it were text
        raise RecordsError(f"{path}: {_damaged('its tables are not described by text')}") from error


def _damaged(what: str) -> str:
    cure = "save what can be read with `sqlite3 FILE .recover`, or move it away and start a new one"
    return f"the tuning database is damaged ({what}); {cure}"


def _explain(error: sqlite3.DatabaseError) -> str:
    text = " ".join(str(error).split())  # names that are quoted from a damaged file may have ends of lines
    if "not a database" in text:
        return "this is not a tuning database (nor any SQLite file); give another path"
    if "malformed" in text or "corrupt" in text:
        return _damaged(text)
    if "locked" in text or "busy" in text:
        return f"another program has kept the tuning database locked for {BUSY_SECONDS:.0f} s; stop it, or use a file of your own"
    if "readonly" in text or "unable to open" in text:
        return f"the tuning database cannot be opened for writing ({text}); check that its folder exists and may be written to"
    if "disk I/O error" in text:
        return "the tuning database cannot be read or written (disk I/O error); check the disk, and whether it has space left"
    if "full" in text:
        return "the disk is full; free some space and run the same command again"
    return f"the tuning database cannot be used: {text}"


def connect(path: Path, create: bool) -> sqlite3.Connection:
    """A connection to the database at ``path``, its tables made if the file is new.

    Raises:
        RecordsError: a directory, a file that is missing and not to be created, that cannot be read, or written where it may
            have to be created, is damaged, is not ours, or was written by a newer ansorlite.
    """
    if path.is_dir():
        raise RecordsError(f"{path} is a folder, not a tuning database; give the path of a file")
    if not path.exists():
        if not create:
            raise RecordsError(f"there is no tuning database at {path}; run `ansorlite tune` with this path to make one")
        if not path.absolute().parent.is_dir():
            raise RecordsError(f"the folder {path.absolute().parent} does not exist; create it, or give another path")
    to_be_read = not create and not (os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK))
    with sqlite_errors(path):
        name = _read_only(path) if to_be_read else path
        connection = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None, uri=to_be_read)
        connection.text_factory = _text
        try:
            if to_be_read:
                _check(connection, path)
                if not _is_empty(connection) and schema_of(connection) < VERSION:
                    connection = _converted_copy(connection, path)
            else:
                _use_wal(connection)
                _check_or_create(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _text(data: bytes) -> str | bytes:
    """What is no text stays bytes: sqlite3 would fail for all rows because of one."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _read_only(path: Path) -> str:
    """The URI of a file that may be read only. SQLite would make files beside it, unless it is told that nobody writes."""
    log = path.with_name(f"{path.name}-wal")
    return f"{path.absolute().as_uri()}?mode=ro{'' if log.exists() else '&immutable=1'}"


def _use_wal(connection: sqlite3.Connection) -> None:
    """Write-ahead logging: readers never wait, and a killed writer leaves the file whole.

    SQLite does not apply its busy timeout to this one statement, so two tuners that make the file at the same
    instant are kept apart here.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    # In WAL mode NORMAL survives the death of this process at any instant; only a power cut may lose the last commits.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether there are no tables in it yet."""
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def schema_of(connection: sqlite3.Connection) -> int:
    """The schema of the tables."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """If there are tables in it, they are ours.

    Raises:
        RecordsError: they are not, or they are those of a newer ansorlite.
    """
    version = schema_of(connection)
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION and not _is_empty(connection):
        raise RecordsError(f"{path} is an SQLite file, but not a tuning database; give another path")
    if version < _OLDEST and not _is_empty(connection):
        raise RecordsError(f"{path}: the tuning database is damaged (it says that its schema is {version}); use another one")
    if version > VERSION:
        raise RecordsError(
            f"{path} was written by a newer ansorlite (schema {version}; this one knows {VERSION}); "
            "upgrade ansorlite, or use another database"
        )


def _check_or_create(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        _check(connection, path)
        if _is_empty(connection):
            for statement in (_TASKS, *_MEASUREMENTS):
                connection.execute(statement)
        else:
            _migrate(connection, path)  # one transaction with the mark below: all of it, or nothing
        if schema_of(connection) != VERSION:
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of an older schema today's. What cannot be converted stays as it was, in the table ``unconverted``."""
    version = schema_of(connection)
    if version == _OLDEST:
        connection.execute("ALTER TABLE measurements ADD COLUMN seal TEXT NOT NULL DEFAULT ''")
    if version < _MACHINES:
        connection.execute("ALTER TABLE measurements ADD COLUMN machine TEXT NOT NULL DEFAULT ''")
    if version < VERSION:
        connection.execute("ALTER TABLE measurements ADD COLUMN peak REAL NOT NULL DEFAULT 0")
    if version < _TRACES:
        connection.execute("DROP INDEX IF EXISTS by_latency")
        connection.execute("ALTER TABLE measurements RENAME TO unconverted")
        for statement in _MEASUREMENTS:
            connection.execute(statement)
        older.convert_table(connection, path)


def _converted_copy(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """A copy in memory, converted, of a file that may only be read; it may only be read, too."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    copy.text_factory = _text
    connection.backup(copy)
    connection.close()
    try:
        _check_or_create(copy, path)
        copy.execute("PRAGMA query_only = ON")
    except BaseException:
        copy.close()
        raise
    return copy


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One write transaction: all of it, or nothing. Takes the write lock at once, so it never fails half-way for want of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
