"""What a database tells of each task: how its best program came to be, and what went wrong on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorlite import visible
from ansorlite.errors import RecordsError, TargetError
from ansorlite.records.database import Database
from ansorlite.records.measurement import Record
from ansorlite.sketch.candidate import NAIVE
from ansorlite.target import host, recorded
from ansorlite.task import Task
from ansorlite.te import serialize
from ansorlite.tuner.result import label

_log = visible.logger(__name__)


@dataclass(frozen=True)
class History:
    """One task on one target.

    Attributes:
        name: of the task, for people.
        task, target: their keys.
        device: the GPU and its limits, as far as this machine knows it; empty: it is a CPU, or not known.
        naive: seconds of the loops as written; ``None`` if they were never timed.
        records: every measurement, in the order in which they were made.
    """

    name: str
    task: str
    target: str
    device: str
    naive: float | None
    records: tuple[Record, ...]

    @property
    def curve(self) -> tuple[float | None, ...]:
        """Seconds of the best checked program after each measurement; ``None`` before there was one."""
        best: float | None = None
        after = []
        for measurement in (record.measurement for record in self.records):
            latency = measurement.latency if measurement.sound else None
            best = latency if best is None or (latency is not None and latency < best) else best
            after.append(best)
        return tuple(after)

    @property
    def best(self) -> float | None:
        """Seconds of the best checked program."""
        return self.curve[-1]

    @property
    def failures(self) -> tuple[Record, ...]:
        """The measurements with which something was wrong."""
        return tuple(record for record in self.records if record.measurement.outcome.failed)


def histories(database: Database) -> tuple[History, ...]:
    """One for each task and target that the database has measurements of, the longest-running naive program first."""
    machine = host()  # a name does not depend on it, and to read its facts takes longer than all the rest
    names = {}
    for entry in database.tasks():
        try:
            names[entry.key] = label(Task(serialize.load(entry.dag), machine))
        except RecordsError as error:
            _log.warning("%s: the task %.80r is left out, as it is damaged: %s", database.path, entry.key, error)
    groups: dict[tuple[str, str], list[Record]] = {}
    known = (record for record in database.records() if record.task in names)
    for record in sorted(known, key=lambda record: (record.measurement.when, record.id)):
        groups.setdefault((record.task, record.target), []).append(record)
    devices = {target: _device(target) for target in {target for _, target in groups}}
    found = [
        History(names[task], task, target, devices[target], _naive(records), tuple(records))
        for (task, target), records in groups.items()
    ]
    return tuple(sorted(found, key=lambda history: -(history.naive or 0.0)))


def _naive(records: Iterable[Record]) -> float | None:
    timed = (record.measurement.latency for record in records if record.measurement.candidate == NAIVE)
    return min((latency for latency in timed if latency is not None), default=None)


def _device(target: str) -> str:
    """See :class:`History`."""
    try:
        gpu = recorded(target).gpu
    except TargetError:
        return ""
    return "" if gpu is None else gpu.limits
