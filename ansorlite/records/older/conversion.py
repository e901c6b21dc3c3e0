"""Records of the schemas before 3 become records of today's, where their programs are still derived (``programs.py``)."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Final

from ansorlite import visible
from ansorlite.errors import AnsorliteError, RecordsError
from ansorlite.records.machine import Machine, this_machine
from ansorlite.records.measurement import Record
from ansorlite.records.older.programs import OldPrograms
from ansorlite.records.rows import COLUMNS, text, to_record
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import NAMED, Target, host, resolve
from ansorlite.target import this_machine as this_target
from ansorlite.task import Task
from ansorlite.te.serialize import load

_log = visible.logger(__name__)

#: What is taken over as it is.
_SAME: Final = tuple(column for column in COLUMNS if column not in ("trace", "seal"))

_INSERT: Final = (
    f"INSERT INTO measurements (id, task, target, trace, seal, {', '.join(_SAME)}) "
    f"SELECT id, task, target, ?, ?, {', '.join(_SAME)} FROM unconverted WHERE id = ? ON CONFLICT DO NOTHING"
)


class Obstacle(Enum):
    """Why a record could not be converted. The value ends a sentence about one of several."""

    DAMAGED = "damaged"
    TARGET = "for a machine that this one knows nothing of"
    TASK = "of a computation that cannot be read"
    PROGRAM = "of a program that today's rules do not derive"
    TWICE = "there twice"


class Converter:
    """Finds the programs of old records, and counts those that it does not find."""

    def __init__(self) -> None:
        self.obstacles: Counter[Obstacle] = Counter()
        self._programs: dict[tuple[str, str], OldPrograms | Obstacle] = {}

    def candidate(self, task: str, dag: object, target: str, named: tuple[str, tuple[int, ...]]) -> Candidate | Obstacle:
        """The program that was recorded as a sketch and a row.

        Args:
            task: the task's key.
            dag: its computation, as ``te.serialize.load`` reads it.
            target: the target's key.
        """
        if (task, target) not in self._programs:
            self._programs[task, target] = _programs(task, dag, target)
        programs = self._programs[task, target]
        if isinstance(programs, Obstacle):
            return programs
        return programs.candidate(*named) or Obstacle.PROGRAM

    def met(self, obstacle: Obstacle) -> Obstacle:
        """Count one record that could not be converted."""
        self.obstacles[obstacle] += 1
        return obstacle

    def warn(self, path: Path, count: int, kept: str) -> None:
        """Say how many of a file's ``count`` old records could not be converted, if any, why, and where they are ``kept``."""
        if self.obstacles:
            why = ", ".join(f"{count} {obstacle.value}" for obstacle, count in self.obstacles.most_common())
            lost = self.obstacles.total()
            _log.warning(
                "%s: %d of %d measurements that an older ansorlite made could not be converted (%s); %s",
                path, lost, count, why, kept,
            )  # fmt: skip


def converted(
    converter: Converter, machine: Machine, record: Record, dag: object, named: tuple[str, tuple[int, ...]]
) -> Record | Obstacle:
    """The record with its program as a trace. What this machine had sealed it seals again; another one's seal says nothing more.

    Args:
        record: all but the program.
        dag: the task's computation, as ``te.serialize.load`` reads it.
        named: the program, as a sketch and a row.
    """
    task, target, measurement = record.task, record.target, record.measurement
    found = converter.candidate(task, dag, target, named)
    if isinstance(found, Obstacle):
        return converter.met(found)
    ours = machine.made(task, target, measurement, record.seal, named)
    measurement = replace(measurement, candidate=found, ours=ours)
    return replace(record, measurement=measurement, seal=machine.seal(task, target, measurement) if ours else "")


def _programs(task: str, dag: object, target: str) -> OldPrograms | Obstacle:
    found = _target(target)
    if found is None:
        return Obstacle.TARGET
    try:
        computation = load(dag)
        if computation.key != task:
            return Obstacle.TASK
        return OldPrograms(Task(computation, found))
    except (AnsorliteError, RecursionError):
        return Obstacle.TASK


def _target(key: str) -> Target | None:
    """The target of that key: this machine, or one that has a name, with any number of threads."""
    threads = key.rpartition(" t")[2]
    if not threads.isdecimal() or not 0 < int(threads) < 1 << 16:
        return None
    known = (host(), this_target(), *map(resolve, NAMED))
    with_threads = (replace(target, threads=int(threads)) for target in known)
    return next((target for target in with_threads if target.key == key), None)


def convert_table(connection: sqlite3.Connection, path: Path) -> None:
    """Move what can be converted from the table ``unconverted``, of schema 2, to ``measurements``; the rest is told why not.

    Within the caller's transaction.
    """
    converter, machine = Converter(), this_machine()
    tasks = {identity: (key, dag) for identity, key, dag in connection.execute("SELECT id, key, dag FROM tasks")}
    columns = ", ".join(("sketch", "row", *(column for column in COLUMNS if column != "trace")))
    rows = connection.execute(f"SELECT id, task, target, {columns} FROM unconverted ORDER BY id").fetchall()
    connection.execute("ALTER TABLE unconverted ADD COLUMN obstacle TEXT")
    for identity, task, target, sketch, row, *cells in rows:
        key, dag = tasks.get(task, (None, None))
        try:
            named = (text(sketch, "sketch"), _row(row))
            computation = json.loads(text(dag, "dag"))
            old = to_record((identity, key, target, "", *cells), str(path), machine)
            found = converted(converter, machine, old, computation, named)
        except (RecordsError, ValueError, RecursionError):
            found = converter.met(Obstacle.DAMAGED)
        if isinstance(found, Record):
            values = (found.measurement.candidate.trace, found.seal, identity)
            # The same program at the same time under two names: what is there already stays.
            if connection.execute(_INSERT, values).rowcount != 1:
                found = converter.met(Obstacle.TWICE)
        if isinstance(found, Obstacle):
            connection.execute("UPDATE unconverted SET obstacle = ? WHERE id = ?", (found.value, identity))
        else:
            connection.execute("DELETE FROM unconverted WHERE id = ?", (identity,))
    if not converter.obstacles:
        connection.execute("DROP TABLE unconverted")
    converter.warn(path, len(rows), "they are kept in its table 'unconverted'")


def _row(value: object) -> tuple[int, ...]:
    """
    Raises:
        ValueError: it is no list of numbers.
    """
    found = json.loads(text(value, "row"))
    if not isinstance(found, list) or not all(isinstance(number, int) and not isinstance(number, bool) for number in found):
        raise ValueError("its row is no list of numbers")
    return tuple(found)
