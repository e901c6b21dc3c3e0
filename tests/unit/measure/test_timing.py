"""How often programs are called; the clock is one that the program itself moves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat as for_ever
from pathlib import Path

import pytest

from ansorlite.measure import MeasureSettings, timing
from ansorlite.measure.measurer import _believed, _Best
from ansorlite.measure.protocol import Answer, Status
from ansorlite.sketch.candidate import NAIVE

SETTINGS = MeasureSettings(repeats=3, repeat_seconds=0.01)


@dataclass
class Program:
    """Takes the given seconds, call by call."""

    clock: list[float]
    seconds: Iterator[float]
    calls: int = 0

    def __call__(self, count: int) -> None:
        for _ in range(count):
            self.clock[0] += next(self.seconds)
            self.calls += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_latency_is_the_median_of_repeats(clock: list[float]) -> None:
    program = Program(clock, for_ever(0.001))
    assert timing.latency(program, 0.002, SETTINGS) == pytest.approx(0.001)
    assert program.calls >= 3 * 10


def test_a_long_program_is_not_called_again(clock: list[float]) -> None:
    program = Program(clock, for_ever(0.7))
    assert timing.latency(program, 0.7, SETTINGS) == 0.7
    assert program.calls == 0


@pytest.mark.parametrize(
    ("first", "again", "slow", "calls"),
    [
        (0.029, 0.0, None, 0),  # within three times the best
        (0.05, 0.05, 0.05, 1),  # slow, and slow again
        (0.05, 0.01, None, 1),  # only the first call was
        (0.2, 0.01, 0.2, 0),  # twenty times the best: not called again
    ],
)
def test_slower(clock: list[float], first: float, again: float, slow: float | None, calls: int) -> None:
    program = Program(clock, for_ever(again))
    assert timing.slower(program, first, 0.01, SETTINGS) == (None if slow is None else pytest.approx(slow))
    assert program.calls == calls


def test_without_a_best_nothing_is_slower(clock: list[float]) -> None:
    assert timing.slower(Program(clock, for_ever(1.0)), 100.0, None, SETTINGS) is None


def test_side_by_side_takes_turns_and_gives_each_its_median(clock: list[float]) -> None:
    ours, theirs = Program(clock, iter([0.02, 0.03, 0.9])), Program(clock, iter([0.02, 0.03, 0.04]))
    assert timing.side_by_side(ours, theirs, (0.02, 0.02), SETTINGS) == (pytest.approx(0.03), pytest.approx(0.03))


def test_one_turn_is_enough_where_the_difference_is_clear(clock: list[float]) -> None:
    ours, theirs = Program(clock, for_ever(0.01)), Program(clock, for_ever(0.1))
    assert timing.side_by_side(ours, theirs, (0.01, 0.1), SETTINGS) == (pytest.approx(0.01), pytest.approx(0.1))
    assert (ours.calls, theirs.calls) == (1, 1)


@pytest.mark.parametrize(
    ("best", "ours", "theirs", "latency"),
    [
        (1.0, 0.8, 1.0, 0.8),  # faster, as it was on its own
        (1.0, 1.2, 1.5, 0.8),  # faster, on a machine that has become slower
        (1.0, 0.8, 0.7, 1.0 * 0.8 / 0.7),  # it only seemed faster: the machine was
        (1.0, 1.3, 1.2, 1.3),  # neither faster nor lucky
        (1.0, 1.0, 1.0, 1.0),  # a draw is no victory
    ],
)
def test_records_rank_as_the_programs_did_side_by_side(best: float, ours: float, theirs: float, latency: float) -> None:
    answer = Answer(Status.OK, latency=0.5, ours=ours, theirs=theirs)
    assert _believed(answer, _Best(NAIVE, best, Path())) == pytest.approx(latency)
