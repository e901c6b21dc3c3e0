"""What other machines recommend gets one timed turn against the best program known here, and the result is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ansorlite import measure
from ansorlite.best.keys import turns_key
from ansorlite.cache.disk import Cache
from ansorlite.errors import RecordsError
from ansorlite.records.database import Database
from ansorlite.records.jsonlines import measurement_from, measurement_json
from ansorlite.records.measurement import Measurement, Outcome, Record, Seconds
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task
from ansorlite.version import __version__

if TYPE_CHECKING:
    from ansorlite.measure import Referee


@dataclass(frozen=True)
class Turn:
    """A candidate's turn.

    Attributes:
        measurement: what became of it.
        rival: seconds of the program that it was compared with, at that moment; ``None`` where there was no comparison.
    """

    measurement: Measurement
    rival: float | None


class Turns:
    """Compares programs, by default in a worker process, and keeps what was measured."""

    def __init__(self, cache: Cache, referee: Referee | None) -> None:
        self._cache = cache
        self._referee = referee

    def close(self) -> None:
        """End the worker."""
        if self._referee is not None:
            self._referee.close()

    def take(self, task: Task, candidate: Candidate, program: bytes, rival: bytes, seconds: float) -> Turn:
        """Time a program beside a rival for so long.

        Raises:
            TuningError: no worker can be had.
        """
        begin = time.time()
        self._referee = self._referee or measure.Referee()
        turn = self._referee.compare(task, program, rival, max(seconds, 0.0))
        measurement = Measurement(
            candidate,
            turn.verdict.outcome,
            latency=turn.latency,
            checked=turn.verdict.outcome is Outcome.OK,
            error=turn.verdict.error,
            seconds=Seconds(run=turn.seconds),
            version=__version__,
            when=begin,
        )
        return Turn(measurement, turn.rival)

    def keep(self, database: Database, task: Task, made: Sequence[Measurement]) -> list[Record]:
        """Know what was measured here, also the next time: in the database, or in the cache where that may only be read, say."""
        records = [_record(task, measurement, database.path) for measurement in made]
        if database.machine.kept:
            try:
                for measurement in made:
                    database.add(task, measurement)
            except RecordsError:
                kept = [*self.kept(database, task), *records]
                self._cache.put(turns_key(task), json.dumps([measurement_json(record) for record in kept]).encode())
        return records

    def kept(self, database: Database, task: Task) -> list[Record]:
        """What was measured here, but could not be written to the database."""
        try:
            known = json.loads(self._cache.get(turns_key(task)) or b"[]")
            measured = [measurement_from(value, str(database.path)) for value in known]
        except (ValueError, RecordsError):
            return []
        return [_record(task, measurement, database.path) for measurement in measured]


def _record(task: Task, measurement: Measurement, path: Path | str) -> Record:
    return Record(0, task.key, task.target.key, replace(measurement, ours=True), str(path))
