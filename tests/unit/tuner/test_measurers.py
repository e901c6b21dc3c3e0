"""Measurers from outside: what they must give, and that everything else is one clear error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

import ansorlite as al
from ansorlite.api.makers import open_measurer
from ansorlite.errors import ArgumentError
from ansorlite.measure.settings import MeasureSettings
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from ansorlite.tuner.measurers import Checked
from tests.unit.tuner.fakes import candidate, scale_task

CANDIDATES = [candidate(0), candidate(1)]
GOOD = [Measurement(c, Outcome.OK, latency=1.0, checked=True) for c in CANDIDATES]
FAILED = Measurement(CANDIDATES[0], Outcome.CRASH)


class Gives:
    """Measures whatever it is asked as it was told to."""

    def __init__(self, measurements: Sequence[Any]) -> None:
        self.measurements = measurements

    def measure(self, *_: Any) -> Iterator[Measurement]:
        yield from self.measurements


def measured(measurements: Sequence[Any]) -> list[Measurement]:
    return list(Checked(Gives(measurements)).measure(scale_task(), CANDIDATES, None))


@pytest.mark.parametrize(
    "measurements",
    [
        GOOD,
        [FAILED, GOOD[1]],
        [replace(GOOD[0], outcome=Outcome.EARLY_STOPPED), GOOD[1]],
        [replace(FAILED, outcome=Outcome.RUN_TIMEOUT), GOOD[1]],
    ],
)
def test_what_is_right_passes(measurements: list[Measurement]) -> None:
    assert measured(measurements) == measurements


@pytest.mark.parametrize(
    ("measurements", "told"),
    [
        (GOOD[:1], "gave 1 measurements for 2 candidates; give one for each"),
        ([*GOOD, *GOOD], "gave more than 2 measurements for 2 candidates"),
        ([1.0, 2.0], "gave 1.0, which is no ansorlite.records.Measurement"),
        (GOOD[::-1], "is due; give them in order"),
        ([replace(GOOD[0], latency=None), GOOD[1]], "gave outcome 'ok' and latency None; a program that ran took some seconds"),
        ([replace(GOOD[0], latency=0.0), GOOD[1]], "latency 0.0; a program that ran"),
        ([replace(GOOD[0], latency=-1.0), GOOD[1]], "latency -1.0; a program that ran"),
        ([replace(GOOD[0], latency=float("nan")), GOOD[1]], "latency nan; a program that ran"),
        ([replace(GOOD[0], latency=float("inf")), GOOD[1]], "latency inf; a program that ran"),
        ([replace(GOOD[0], latency="fast"), GOOD[1]], "latency 'fast'; a program that ran"),
        ([replace(GOOD[0], latency=1), GOOD[1]], "latency 1; a program that ran"),
        ([replace(FAILED, latency=1.0), GOOD[1]], "gave outcome 'crash' and latency 1.0; a failure has none"),
    ],
)
def test_what_is_wrong_is_told(measurements: list[Any], told: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        measured(measurements)
    assert told in str(caught.value)


def test_who_asks_may_leave_before_the_last() -> None:
    measurements = Checked(Gives(GOOD)).measure(scale_task(), CANDIDATES, None)
    assert isinstance(measurements, Iterator)
    assert next(measurements) is GOOD[0]
    del measurements


class Formula:
    """Measures in no time: the sum of a row is its nanoseconds."""

    def __init__(self, target: Target, settings: MeasureSettings) -> None:
        self.made_with = target, settings.seed
        self.entered = self.left = 0

    def __enter__(self) -> Self:
        self.entered += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.left += 1

    def measure(self, task: Task, candidates: Sequence[Candidate], best: Measurement | None) -> Iterator[Measurement]:
        assert best is None or (best.checked and len(task.dag.outputs) == 1)
        for item in candidates:
            latency = 1e-9 * (1000 - int(item.name, 16) % 500)
            yield Measurement(item, Outcome.OK, latency=latency, checked=True, when=time.time())


def test_it_is_entered_and_left(tmp_path: Path) -> None:
    made: list[Formula] = []

    def maker(target: Target, settings: MeasureSettings) -> Formula:
        made.append(Formula(target, settings))
        return made[-1]

    task = scale_task(64)
    result = al.tune(task, trials=20, seed=7, measurer=maker, database=tmp_path / "t.db", progress=False)
    (formula,) = made
    assert formula.made_with == (task.target, 7)
    assert (formula.entered, formula.left) == (1, 1)
    assert result.best_latency == min(trial.latency for trial in result.history if trial.latency)
    again = al.tune(task, trials=20, measurer=maker, database=tmp_path / "t.db", progress=False)
    assert (again.restored, len(made)) == (20, 1)  # there is nothing left to measure


def test_what_it_raises_is_its_own(tmp_path: Path) -> None:
    class Lost(Formula):
        def measure(self, *_: Any) -> Iterator[Measurement]:
            raise ConnectionError("the tracker is gone")

    with pytest.raises(ConnectionError, match="the tracker is gone"):
        al.tune(scale_task(), trials=4, measurer=Lost, database=tmp_path / "t.db", progress=False)


@pytest.mark.parametrize("make", [lambda *_: 5, lambda *_: nullcontext(5)])
def test_what_measures_nothing(make: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError), open_measurer(make, resolve("llvm"), MeasureSettings()):
        pytest.fail("it was opened")
