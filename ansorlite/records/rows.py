"""A measurement as a row of the table, and back."""

from __future__ import annotations

import json
from typing import Any, Final

from ansorlite.errors import RecordsError
from ansorlite.records.measurement import Measurement, Outcome, Record, Seconds
from ansorlite.sketch.candidate import Candidate

#: The columns of a measurement, in the order of :func:`to_row`; ``task`` and ``target`` come before them.
COLUMNS: Final = (
    "sketch",
    "row",
    "key",
    "outcome",
    "latency",
    "checked",
    "error",
    "build_seconds",
    "run_seconds",
    "check_seconds",
    "version",
    "time",
)

#: Selects what :func:`to_record` reads.
SELECT: Final = (
    f"SELECT m.id, t.key, m.target, {', '.join(f'm.{column}' for column in COLUMNS)} "
    "FROM measurements AS m JOIN tasks AS t ON t.id = m.task"
)


def to_row(measurement: Measurement) -> tuple[Any, ...]:
    """The values of :data:`COLUMNS`."""
    return (
        measurement.candidate.sketch,
        json.dumps([int(value) for value in measurement.candidate.row]),
        measurement.key,
        measurement.outcome.value,
        measurement.latency,
        int(measurement.checked),
        measurement.error,
        measurement.seconds.build,
        measurement.seconds.run,
        measurement.seconds.check,
        measurement.version,
        measurement.when,
    )


def to_record(row: tuple[Any, ...], database: str) -> Record:
    """The record of one row of :data:`SELECT`.

    Raises:
        RecordsError: the row does not hold a measurement.
    """
    identity, task, target, sketch, values, key, outcome, latency, checked, error, build, run, check, version, when = row
    try:
        measurement = Measurement(
            candidate=Candidate(sketch, tuple(int(value) for value in json.loads(values))),
            outcome=Outcome(outcome),
            key=key,
            latency=latency,
            checked=bool(checked),
            error=error,
            seconds=Seconds(build, run, check),
            version=version,
            when=when,
        )
    except (ValueError, TypeError) as problem:
        raise RecordsError(f"{database}: record {identity} is damaged ({problem}); use another database") from problem
    return Record(identity, task, target, measurement, database)
