"""Export and import of a database as JSON lines: one task or one measurement a line, for people, scripts and merging.

A task line comes before the measurements of that task::

    {"kind": "task", "schema": 2, "key": "...", "dag": {...}, "first_seen": 1.7e9}
    {"kind": "measurement", "schema": 2, "task": "...", "target": "...", "trace": "def schedule(s): ...", "key": "9f...",
     "outcome": "ok", "latency": 1.2e-4, "checked": true, "error": "", "build_seconds": 0.03, "run_seconds": 0.05,
     "check_seconds": 0.001, "version": "0.1.0", "time": 1.7e9, "seal": "3e...",
     "machine": "", "peak": 1.9e11}

What a file says of latencies is believed only where the seal shows that this machine took them (``records/machine.py``), and
that nobody has changed the line since. Older files have no seals, name no machine, and know no peak.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ansorlite.errors import AnsorliteError, RecordsError
from ansorlite.records import older
from ansorlite.records.database import Database, TaskEntry
from ansorlite.records.measurement import Measurement, Outcome, Record, Seconds
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.te.serialize import load

#: Raised by one whenever an older ansorlite could not read what a newer one writes.
VERSION: Final = 2


def export_lines(database: Database) -> Iterator[str]:
    """Everything in the database that is not damaged, one JSON object at a time, without newlines."""
    return lines_of(database.tasks(), database.records())


def lines_of(tasks: Sequence[TaskEntry], records: Sequence[Record]) -> Iterator[str]:
    """Tasks, then those of the records that are of them."""
    for entry in tasks:
        yield json.dumps({"kind": "task", "schema": VERSION, "key": entry.key, "dag": entry.dag, "first_seen": entry.first_seen})
    known = {entry.key for entry in tasks}
    for record in records:
        if record.task in known:
            yield json.dumps(measurement_json(record), allow_nan=False)


def measurement_json(record: Record) -> dict[str, Any]:
    """One record as a JSON object."""
    measurement = record.measurement
    return {
        "kind": "measurement",
        "schema": VERSION,
        "task": record.task,
        "target": record.target,
        "trace": measurement.candidate.trace,
        "key": measurement.key,
        "outcome": measurement.outcome.value,
        "latency": measurement.latency,
        "checked": measurement.checked,
        "error": measurement.error,
        "build_seconds": measurement.seconds.build,
        "run_seconds": measurement.seconds.run,
        "check_seconds": measurement.seconds.check,
        "version": measurement.version,
        "time": measurement.when,
        "seal": record.seal,
        "machine": measurement.machine,
        "peak": measurement.peak,
    }


def measurement_from(value: Any, place: str) -> Measurement:
    """What :func:`measurement_json` made an object of.

    Args:
        place: what an error says is wrong.

    Raises:
        RecordsError: it is something else.
    """
    if not isinstance(value, dict):
        raise RecordsError(f"{place}: this is not a JSON object")
    fields = _Fields(value, place)
    return _record(fields, Candidate(fields.text("trace"))).measurement


def import_lines(database: Database, path: str | os.PathLike[str]) -> int:
    """Add the lines of a file that :func:`export_lines` made: all of them, or nothing. Doing it twice adds nothing.

    Returns:
        How many measurements are new.

    Raises:
        RecordsError: the file cannot be read, or a line (which is named) is not what it should be.
    """
    source = Path(path)
    try:
        with source.open("rb") as lines:
            read = read_lines(database, source, lines)
    except OSError as error:
        raise RecordsError(f"{source} cannot be read ({error.strerror})") from error
    return database.merge(read.tasks, read.records)


def read_lines(database: Database, source: Path, lines: Iterable[bytes], first: int = 1) -> Lines:
    """What the lines of a file say.

    Args:
        database: whose tasks the lines may be of, too.
        source: the file, for errors.
        first: the number of the first of the lines.

    Raises:
        RecordsError: a line (which is named) is not what it should be.
    """
    read = Lines(database)
    try:
        for number, line in enumerate(lines, first):
            if line.strip():
                read.add(line.decode(), f"{source}, line {number}")
    except UnicodeDecodeError as error:
        raise RecordsError(f"{source} is not a text file of JSON lines") from error
    if read.converter is not None:
        read.converter.warn(source, read.old, "the file still has them")
    return read


class Lines:
    """The lines of a file, each validated."""

    def __init__(self, database: Database) -> None:
        self.tasks: list[TaskEntry] = []
        self.records: list[Record] = []
        #: How many records have their programs as a sketch and a row.
        self.old = 0
        self.converter: older.Converter | None = None
        self._known = {entry.key: entry for entry in database.tasks()}
        self._database = database

    def add(self, line: str, place: str) -> None:
        """Put one line with ``tasks`` or ``records``.

        Raises:
            RecordsError: the line, which is at ``place``, is not what it should be.
        """
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordsError(f"{place}: this is not JSON ({error})") from error
        if not isinstance(value, dict):
            raise RecordsError(f"{place}: this is not a JSON object")
        fields = _Fields(value, place)
        schema = fields.integer("schema")
        if schema > VERSION:
            raise RecordsError(f"{place}: a newer ansorlite wrote this (schema {schema}, not {VERSION}); upgrade ansorlite")
        match fields.text("kind"):
            case "task":
                self.tasks.append(_task(fields))
                self._known[self.tasks[-1].key] = self.tasks[-1]
            case "measurement":
                if fields.text("task") not in self._known:
                    raise RecordsError(f"{place}: the task of this measurement is in no line before it")
                if schema < VERSION:
                    self._convert(fields)
                else:
                    self.records.append(_record(fields, Candidate(fields.text("trace"))))
            case other:
                raise RecordsError(f"{place}: kind is {other!r}; it should be 'task' or 'measurement'")

    def _convert(self, fields: _Fields) -> None:
        self.old += 1
        self.converter = self.converter or older.Converter()
        named = (fields.text("sketch"), fields.integers("row"))
        record = _record(fields, NAIVE)
        found = older.converted(self.converter, self._database.machine, record, self._known[record.task].dag, named)
        if isinstance(found, Record):
            self.records.append(found)


class _Fields:
    """The fields of one line, each read with the type it must have."""

    def __init__(self, value: dict[str, Any], place: str) -> None:
        self.value = value
        self.place = place

    def wrong(self, name: str, wanted: str) -> RecordsError:
        try:
            found = json.dumps(self.value[name])[:80] if name in self.value else "missing"
        except RecursionError:
            found = "too deep"
        return RecordsError(f"{self.place}: {name!r} should be {wanted}; it is {found}")

    def text(self, name: str) -> str:
        value = self.value.get(name)
        if not isinstance(value, str) or not _is_unicode(value):
            raise self.wrong(name, "a string")
        return value

    def integer(self, name: str) -> int:
        value = self.value.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name, "an integer")
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        value = self.value.get(name)
        if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            raise self.wrong(name, "a list of integers")
        return tuple(value)

    def flag(self, name: str) -> bool:
        value = self.value.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def seconds(self, name: str, least: float = 0.0) -> float:
        value = self.value.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not (least <= value <= sys.float_info.max):
            raise self.wrong(name, f"a number of seconds{' greater than 0' if least else ''}")
        return float(value)

    def rate(self, name: str) -> float:
        value = self.value.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not (0 <= value <= sys.float_info.max):
            raise self.wrong(name, "operations a second, or 0")
        return float(value)


def _is_unicode(text: str) -> bool:
    """JSON can name halves of characters, which no file can hold."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _task(fields: _Fields) -> TaskEntry:
    key, dag = fields.text("key"), fields.value.get("dag")
    if not isinstance(dag, dict):
        raise fields.wrong("dag", "an object")
    try:
        found = load(dag).key
    except (AnsorliteError, RecursionError) as error:
        raise RecordsError(f"{fields.place}: 'dag' is not a computation ({error})") from error
    if found != key:
        raise RecordsError(f"{fields.place}: 'key' does not belong to 'dag', whose key is {found!r}")
    return TaskEntry(key, dag, fields.seconds("first_seen"))


def _record(fields: _Fields, candidate: Candidate) -> Record:
    try:
        outcome = Outcome(fields.text("outcome"))
    except ValueError:
        raise fields.wrong("outcome", f"one of {', '.join(outcome.value for outcome in Outcome)}") from None
    if not outcome.timed and fields.value.get("latency") is not None:
        raise fields.wrong("latency", f"null, as the outcome is {outcome.value!r}")
    measurement = Measurement(
        candidate=candidate,
        outcome=outcome,
        key=fields.text("key"),
        latency=fields.seconds("latency", least=math.ulp(0.0)) if outcome.timed else None,
        checked=fields.flag("checked"),
        error=fields.text("error"),
        seconds=Seconds(fields.seconds("build_seconds"), fields.seconds("run_seconds"), fields.seconds("check_seconds")),
        version=fields.text("version"),
        when=fields.seconds("time"),
        machine=fields.text("machine") if "machine" in fields.value else "",
        peak=fields.rate("peak") if "peak" in fields.value else 0.0,
    )
    seal = fields.text("seal") if "seal" in fields.value else ""
    return Record(0, fields.text("task"), fields.text("target"), measurement, "", seal)
