"""Tasks and measurements to put into databases."""

from __future__ import annotations

from dataclasses import replace

from ansorlite import te
from ansorlite.records import Measurement, Outcome, Seconds
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


def task(n: int = 8) -> Task:
    a = te.placeholder((n,), name="A")
    return Task([a, te.compute((n,), lambda i: te.exp(a[i]), name="B")])


def candidate(*numbers: int) -> Candidate:
    """A program that the numbers tell from others; no database asks whether a task has it."""
    return Candidate(f"program {' '.join(map(str, numbers))}")


def measurement(*numbers: int, outcome: Outcome = Outcome.OK, latency: float | None = 1e-3, checked: bool = True) -> Measurement:
    return Measurement(
        candidate=candidate(*numbers),
        outcome=outcome,
        key="".join(f"{value:02x}" for value in numbers),
        latency=latency,
        checked=checked,
        seconds=Seconds(0.5, 0.25, 0.125),
        version="1.2.3",
        when=1e9,
    )


def failure(*numbers: int, outcome: Outcome, error: str) -> Measurement:
    return replace(measurement(*numbers, outcome=outcome, latency=None, checked=False), error=error)
