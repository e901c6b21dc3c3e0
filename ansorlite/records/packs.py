"""Packs: the best programs of a model's tasks as a file that travels, without weights and without code.

A pack is text, JSON lines as ``records/jsonlines.py`` has them, with a line before them that says what it is and what the rest
must be::

    {"kind": "pack", "schema": 1, "name": "resnet50.onnx", "version": "0.1.0", "digest": "sha256 of all that follows, hex"}

The digest finds damage; it does not say who wrote the file, and nobody has to believe it. On the machine that measured them the
records in it count, by their seals. On any other they are hints: each gets a timed turn against the best program known there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ansorlite.errors import RecordsError
from ansorlite.records.database import Database
from ansorlite.records.hints import MOST
from ansorlite.records.jsonlines import import_lines, lines_of, read_lines
from ansorlite.records.measurement import Measurement, Record
from ansorlite.task import Task
from ansorlite.version import __version__
from ansorlite.writing import replacing

#: Raised by one whenever an older ansorlite could not read what a newer one writes.
VERSION: Final = 1

_BEGINNING: Final = b'{"kind": "pack"'
#: Bytes of the first line, at most.
_LONGEST: Final = 1 << 16


def is_pack(path: str | os.PathLike[str]) -> bool:
    """Whether the file says that it is a pack."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


def write_pack(databases: Sequence[Database], tasks: Sequence[Task], path: Path, name: str) -> dict[str, int]:
    """Write the best few programs of each of ``tasks``, of each target that they were measured on.

    Args:
        name: of what the tasks are of, for people.

    Returns:
        How many of the tasks each target has programs of, by the target's key.

    Raises:
        RecordsError: there is none.
        ArgumentError: the file cannot be written.
    """
    found: dict[str, int] = {}
    entries, records = [], []
    with Database(":memory:") as joined:  # one task may have other names in each
        wanted = dict.fromkeys(task.key for task in tasks)
        for database in databases:
            joined.merge(
                [entry for entry in database.tasks() if entry.key in wanted],
                [record for key in wanted for record in database.records(key)],
            )
        for key in wanted:
            known = joined.records(key)
            best = {target: _best([record for record in known if record.target == target]) for target in joined.targets(key)}
            for target, few in best.items():
                found[target] = found.get(target, 0) + bool(few)
                records += few
            if any(best.values()):
                entries.append(joined.task(key))
    if not records:
        raise RecordsError(f"{databases[0].path} has no program of {name} that ran and was right; tune it first")
    body = "".join(f"{line}\n" for line in lines_of(entries, records)).encode()
    head = {"kind": "pack", "schema": VERSION, "name": name, "version": __version__, "digest": _digest(body)}
    with replacing(path) as new:
        new.write_bytes(json.dumps(head).encode() + b"\n" + body)
    return {target: count for target, count in found.items() if count}


def _best(records: Sequence[Record]) -> list[Record]:
    """The fastest few programs: by what this machine has written, if there is such a record; else by what others say."""
    sound = [record for record in records if record.measurement.sound]
    ours = [record for record in sound if record.measurement.ours] or sound
    best: dict[str, Record] = {}
    for record in sorted(ours, key=lambda record: record.measurement.latency or 0.0):
        best.setdefault(record.measurement.candidate.trace, record)
    return list(best.values())[:MOST]


class Pack(Database):
    """A pack as a database that is only read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read it.

        Raises:
            RecordsError: it is no pack, or was damaged or cut off, or a newer ansorlite wrote it.
        """
        super().__init__(":memory:")
        self.path = Path(path)
        read = read_lines(self, self.path, _body(self.path).splitlines(), 2)
        self.merge(read.tasks, read.records)

    def add(self, task: Task, measurement: Measurement) -> int:  # noqa: ARG002 (a pack takes none)
        raise RecordsError(f"{self.path} is a pack, which is only read; give a database to write to")

    def records_of(self, task: Task) -> list[Record]:
        """The records of a task on its target; where the pack has none, those on others, of which nothing was measured here."""
        found = super().records_of(task)
        others = [] if found else self._in_names_of(task, self.records(task.key))
        return found or [replace(record, measurement=replace(record.measurement, ours=False)) for record in others]


def import_file(database: Database, path: Path) -> int:
    """Add what a pack or a file of JSON lines holds: all of it, or nothing. Doing it twice adds nothing.

    Returns:
        How many measurements are new.

    Raises:
        RecordsError: the file is not what it should be.
    """
    if not is_pack(path):
        return import_lines(database, path)
    read = read_lines(database, path, _body(path).splitlines(), 2)
    return database.merge(read.tasks, read.records)


def _body(path: Path) -> bytes:
    """All but the first line, which is right about it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordsError(f"{path} cannot be read ({error.strerror})") from error
    head, _, body = content.partition(b"\n")
    fields: Any = None
    if len(head) <= _LONGEST:
        try:
            fields = json.loads(head)
        except (ValueError, RecursionError):
            fields = None
    if not isinstance(fields, dict) or fields.get("kind") != "pack":
        raise RecordsError(f"{path} is no pack; `ansorlite pack tuning.db model.onnx -o model.pack` makes one")
    schema = fields.get("schema")
    if isinstance(schema, int) and schema > VERSION:
        raise RecordsError(f"{path} was packed by a newer ansorlite (schema {schema}, not {VERSION}); upgrade ansorlite")
    if fields.get("digest") != _digest(body):
        raise RecordsError(f"{path} was damaged, cut off, or changed since it was packed; get it again, or pack it again")
    return body


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
