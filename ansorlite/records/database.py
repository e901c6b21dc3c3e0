"""The database: one SQLite file of tasks and of what became of every candidate measured.

Each measurement is committed at once, so a tuner killed at any instant loses at most the one in flight. Several
tuners may write one file. A record is data: nothing that is read here is ever run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ansorlite import visible
from ansorlite.errors import RecordsError
from ansorlite.records.machine import Machine, this_machine
from ansorlite.records.measurement import Measurement, Outcome, Record
from ansorlite.records.names import Naming, naming
from ansorlite.records.rows import COLUMNS, SELECT, seconds, text, to_record, to_row
from ansorlite.records.schema import connect, sqlite_errors, transaction
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.serialize import dump, load

_log = visible.logger(__name__)

_INSERT = (
    f"INSERT INTO measurements (task, target, {', '.join(COLUMNS)}) "
    f"SELECT id, ?, {', '.join('?' * len(COLUMNS))} FROM tasks WHERE key = ? ON CONFLICT DO NOTHING"
)


@dataclass(frozen=True)
class TaskEntry:
    """A task as the database knows it.

    Attributes:
        key: the workload key.
        dag: the computation, as ``te.serialize.load`` reads it.
        first_seen: Unix time in seconds.
    """

    key: str
    dag: dict[str, Any]
    first_seen: float


class Database:
    """The tuning records in the file at ``path``, which is made if it does not exist.

    Every method raises :class:`RecordsError` when the file turns out to be damaged, locked for too long, or not writable. Single
    rows that are damaged are left out; :meth:`warn` says so.
    """

    def __init__(self, path: str | os.PathLike[str], create: bool = True) -> None:
        """Open the file.

        Args:
            create: whether a file that does not exist is made, or an error. Without it, a file that may only be read is read.

        Raises:
            RecordsError: a directory, a missing file, one that cannot be written (without ``create``: read), one that is
                damaged or not ours, or one that was written by a newer ansorlite.
        """
        if not isinstance(path, str | os.PathLike):
            raise RecordsError(f"a database is given by the path of its file, not by {path!r}")
        self.path = Path(path)
        self._connection = connect(self.path, create)
        self._damaged: dict[str, str] = {}  # which row -> what is wrong with it
        self._told = 0
        self._namings: dict[tuple[str, tuple[tuple[str, ...], ...]], Naming] = {}

    @cached_property
    def machine(self) -> Machine:
        """The one that this process runs on: what it measured is known by its seal."""
        return this_machine()

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        with sqlite_errors(self.path):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # Writing ------------------------------------------------------------------------------------------------------

    def add(self, task: Task, measurement: Measurement) -> int:
        """Keep one measurement of ``task`` on its target, which was made on this machine; it is on disk when this returns.

        Returns:
            The record's id, or 0 where this very measurement (same candidate, same time) was there already.
        """
        with sqlite_errors(self.path), transaction(self._connection):
            known = self._connection.execute("SELECT 1 FROM tasks WHERE key = ?", (task.key,)).fetchone()
            if known is None:
                self._add_task(TaskEntry(task.key, dump(task.dag), time.time()))
            kept = self._naming(task.key, task.dag).to_keep(measurement)
            seal = self.machine.seal(task.key, task.target.key, kept)
            return self._add_measurement(task.key, task.target.key, kept, seal)

    def merge(self, tasks: Sequence[TaskEntry], records: Sequence[Record]) -> int:
        """Add what another database held, all of it or nothing. What is here already is not added again.

        What this machine has measured, and nobody has changed since, it knows by its seal; the rest counts as another's.

        Args:
            tasks: must hold, or this database must know, the task of every record.
            records: their ``id`` and ``database`` do not matter.

        Returns:
            How many measurements are new.
        """
        with sqlite_errors(self.path), transaction(self._connection):
            theirs = {entry.key: _computation(entry) for entry in tasks}
            for entry in tasks:
                self._add_task(entry)
            kept = (self._kept(record, theirs.get(record.task)) for record in records)
            return sum(self._add_measurement(each.task, each.target, each.measurement, each.seal) != 0 for each in kept)

    def _kept(self, record: Record, own: ComputeDAG | None) -> Record:
        """The record in the names by which this database knows its task; ``own`` has those that it came with."""
        if own is None:
            return record
        measurement = self._naming(record.task, own).to_keep(record.measurement)
        if measurement.candidate == record.measurement.candidate:
            return record
        ours = self.machine.made(record.task, record.target, record.measurement, record.seal)
        seal = self.machine.seal(record.task, record.target, measurement) if ours else ""
        return replace(record, measurement=measurement, seal=seal)

    def _add_task(self, entry: TaskEntry) -> None:
        self._connection.execute(
            "INSERT INTO tasks (key, dag, first_seen) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING",
            (entry.key, json.dumps(entry.dag), entry.first_seen),
        )

    def _add_measurement(self, task: str, target: str, measurement: Measurement, seal: str) -> int:
        cursor = self._connection.execute(_INSERT, (target, *to_row(measurement, seal), task))
        return int(cursor.lastrowid or 0) if cursor.rowcount == 1 else 0

    def _naming(self, key: str, own: ComputeDAG) -> Naming:
        """Turns the names of a task into those by which it is known here; a task that is not has none yet."""
        known = self._namings.get((key, own.names))
        if known is None:
            rows = self._rows("SELECT key, dag, first_seen FROM tasks WHERE key = ?", (key,))
            try:
                known = naming(_entry(*rows[0]).dag, own) if rows else Naming(own, own)
            except ValueError:  # a damaged task: `tasks` tells
                known = Naming(own, own)
            if rows:
                self._namings[key, own.names] = known
        return known

    # Reading ------------------------------------------------------------------------------------------------------

    def records_of(self, task: Task) -> list[Record]:
        """The records of a task on its target, oldest first, with traces in the names of the task.

        Those of an equal computation with other names are among them.
        """
        return self._in_names_of(task, self.records(task.key, task.target.key))

    def _in_names_of(self, task: Task, records: Sequence[Record]) -> list[Record]:
        names = self._naming(task.key, task.dag)
        return [replace(record, measurement=names.to_use(record.measurement)) for record in records]

    def best(self, task: str, target: str) -> Measurement | None:
        """The fastest checked measurement, made on this machine, of a task (key) on a target (key); ``None`` if there is none."""
        found = self._select(
            "WHERE t.key = ? AND m.target = ? AND m.outcome = ? AND m.checked ORDER BY m.latency, m.id",
            (task, target, Outcome.OK.value),
        )
        return next((record.measurement for record in found if record.measurement.here), None)

    def record(self, identity: int) -> Record:
        """The record of that id.

        Raises:
            RecordsError: there is none, or it is damaged.
        """
        for row in self._rows(f"{SELECT} WHERE m.id = ?", (identity,)):
            return to_record(row, str(self.path), self.machine)
        raise RecordsError(f"{self.path} has no record {identity}; `ansorlite records {self.path}` lists those it has")

    def records(
        self,
        task: str | None = None,
        target: str | None = None,
        outcome: Outcome | None = None,
        since: int = 0,
        limit: int | None = None,
    ) -> list[Record]:
        """The records that fit every filter given, oldest first.

        Args:
            task: a task key.
            target: a target key.
            outcome: one outcome.
            since: only records whose id is greater.
            limit: at most so many.
        """
        where, values = _filters(task, target, outcome)
        where, values = f"{where} AND m.id > ?", (*values, since)
        return list(self._select(f"{where} ORDER BY m.id LIMIT ?", (*values, -1 if limit is None else limit)))

    def outcomes(self, task: str | None = None, target: str | None = None) -> dict[Outcome, int]:
        """How many records there are of each outcome; outcomes that never happened are left out."""
        where, values = _filters(task, target, None)
        rows = self._rows(
            f"SELECT m.outcome, count(*) FROM measurements AS m JOIN tasks AS t ON t.id = m.task {where} GROUP BY m.outcome",
            values,
        )
        counts: dict[object, int] = dict(rows)
        return {outcome: counts[outcome.value] for outcome in Outcome if outcome.value in counts}

    def targets(self, task: str) -> tuple[str, ...]:
        """The keys of the targets on which a task was measured: says why another target has no record of it."""
        rows = self._rows(
            "SELECT DISTINCT m.target FROM measurements AS m JOIN tasks AS t ON t.id = m.task WHERE t.key = ? ORDER BY m.target",
            (task,),
        )
        return tuple(target for (target,) in rows if isinstance(target, str))

    def tasks(self) -> list[TaskEntry]:
        """Every task ever seen, oldest first."""
        entries = []
        for identity, *row in self._rows("SELECT id, key, dag, first_seen FROM tasks ORDER BY id", ()):
            try:
                entries.append(_entry(*row))
            except ValueError as problem:
                self._damaged[f"task {identity}"] = str(problem)
        return entries

    def task(self, key: str) -> TaskEntry:
        """The task of that key.

        Raises:
            RecordsError: there is none, or it is damaged.
        """
        for row in self._rows("SELECT key, dag, first_seen FROM tasks WHERE key = ?", (key,)):
            try:
                return _entry(*row)
            except ValueError as problem:
                raise RecordsError(f"{self.path}: the task {key!r} is damaged ({problem}); the others can be used") from problem
        raise RecordsError(f"{self.path} has no task {key!r}")

    def warn(self) -> None:
        """Say how many rows were left out so far because they are damaged, if there are more than were told before."""
        for (identity,) in self._rows(
            "SELECT id FROM measurements WHERE typeof(target) <> 'text' OR task NOT IN (SELECT id FROM tasks)", ()
        ):
            self._damaged.setdefault(f"record {identity}", "its task or target is not known")
        if len(self._damaged) > self._told:
            self._told = len(self._damaged)
            row, problem = next(iter(self._damaged.items()))
            _log.warning("%s: damaged rows that are left out: %d; the first is %s: %s", self.path, self._told, row, problem)

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with sqlite_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _select(self, where: str, values: tuple[Any, ...]) -> Iterator[Record]:
        """The records that can be read."""
        for row in self._rows(f"{SELECT} {where}", values):
            try:
                yield to_record(row, str(self.path), self.machine)
            except RecordsError as problem:
                self._damaged[f"record {row[0]}"] = str(problem.__cause__)


def _computation(entry: TaskEntry) -> ComputeDAG | None:
    """What is computed; ``None`` where the entry does not say so."""
    try:
        return load(entry.dag)
    except RecordsError:
        return None


def _entry(key: object, dag: object, first_seen: object) -> TaskEntry:
    """
    Raises:
        ValueError: the row holds no task.
    """
    try:
        data = json.loads(text(dag, "dag"))
    except RecursionError:
        raise ValueError("its dag is no computation: it is too deep") from None
    if not isinstance(data, dict):
        raise ValueError("its dag is no computation")
    return TaskEntry(text(key, "key"), data, seconds(first_seen, "first_seen"))


def _filters(task: str | None, target: str | None, outcome: Outcome | None) -> tuple[str, tuple[Any, ...]]:
    wanted = {"t.key": task, "m.target": target, "m.outcome": outcome.value if outcome else None}
    given = {column: value for column, value in wanted.items() if value is not None}
    return "WHERE 1" + "".join(f" AND {column} = ?" for column in given), tuple(given.values())
