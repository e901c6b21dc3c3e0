"""A measurement as a row of the table, and back. Nothing of a row is believed to be of its column's type."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

from ansorlite.errors import RecordsError
from ansorlite.records.machine import Machine
from ansorlite.records.measurement import Measurement, Outcome, Record, Seconds
from ansorlite.sketch.candidate import Candidate

#: The columns of a measurement, in the order of :func:`to_row`; ``task`` and ``target`` come before them.
COLUMNS: Final = (
    "trace",
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
    "seal",
    "machine",
    "peak",
)

#: Selects what :func:`to_record` reads.
SELECT: Final = (
    f"SELECT m.id, t.key, m.target, {', '.join(f'm.{column}' for column in COLUMNS)} "
    "FROM measurements AS m JOIN tasks AS t ON t.id = m.task"
)


def to_row(measurement: Measurement, seal: str) -> tuple[Any, ...]:
    """The values of :data:`COLUMNS`."""
    return (
        measurement.candidate.trace,
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
        seal,
        measurement.machine,
        measurement.peak,
    )


def to_record(row: tuple[Any, ...], database: str, machine: Machine) -> Record:
    """The record of one row of :data:`SELECT`.

    Args:
        machine: the one whose seal counts.

    Raises:
        RecordsError: the row does not hold a measurement.
    """
    identity, task, target, *values = row
    cells = dict(zip(COLUMNS, values, strict=True))
    try:
        outcome = _outcome(cells["outcome"])
        measurement = Measurement(
            candidate=Candidate(text(cells["trace"], "trace")),
            outcome=outcome,
            key=text(cells["key"], "key"),
            latency=_latency(cells["latency"], outcome),
            checked=_flag(cells["checked"]),
            error=text(cells["error"], "error"),
            seconds=Seconds(*(seconds(cells[name], name) for name in ("build_seconds", "run_seconds", "check_seconds"))),
            version=text(cells["version"], "version"),
            when=seconds(cells["time"], "time"),
            machine=text(cells["machine"], "machine"),
            peak=_rate(cells["peak"]),
        )
        task, target = text(task, "task"), text(target, "target")
        seal = text(cells["seal"], "seal")
    except ValueError as problem:
        raise RecordsError(f"{database}: record {identity} is damaged ({problem}); the others can be used") from problem
    ours = machine.made(task, target, measurement, seal)
    return Record(identity, task, target, replace(measurement, ours=ours), database, seal)


# One cell each; a ValueError says what is wrong -------------------------------------------------------------------


def text(value: object, column: str) -> str:
    if not isinstance(value, str):
        raise _wrong(value, column, "text")
    return value


def seconds(value: object, column: str) -> float:
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise _wrong(value, column, "a number of seconds")
    return float(value)


def _rate(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise _wrong(value, "peak", "operations a second, or 0")
    return float(value)


def _outcome(value: object) -> Outcome:
    try:
        return Outcome(value)
    except ValueError:
        raise _wrong(value, "outcome", f"one of {', '.join(outcome.value for outcome in Outcome)}") from None


def _latency(value: object, outcome: Outcome) -> float | None:
    if not outcome.timed:
        if value is not None:
            raise _wrong(value, "latency", f"empty, as the outcome is {outcome.value}")
        return None
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise _wrong(value, "latency", "a number of seconds greater than 0")
    return float(value)


def _flag(value: object) -> bool:
    if value not in (0, 1):
        raise _wrong(value, "checked", "0 or 1")
    return bool(value)


def _wrong(value: object, column: str, wanted: str) -> ValueError:
    return ValueError(f"its {column} should be {wanted}; it is {repr(value)[:80]}")
