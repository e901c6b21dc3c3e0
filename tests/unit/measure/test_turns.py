"""How often programs are called; the clock is the program's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from itertools import repeat as for_ever

import pytest

from ansorlite.measure import MeasureSettings, turns
from ansorlite.measure.timing import TIMINGS, steady

SETTINGS = MeasureSettings(repeats=3, repeat_seconds=0.01)


@dataclass
class Program:
    """Takes the given seconds, call by call.

    Attributes:
        disturbed: the turns during which something else took the machine.
    """

    each: Iterator[float]
    disturbed: Sequence[int] = ()
    calls: int = 0

    def seconds(self, calls: int) -> float:
        self.calls += calls
        return sum(next(self.each) for _ in range(calls))

    def disturbances(self) -> int:
        return sum(turn < self.calls for turn in self.disturbed)


def test_latency_is_the_median_of_repeats() -> None:
    program = Program(for_ever(0.001))
    assert turns.latency(program, 0.002, SETTINGS) == pytest.approx(0.001)
    assert program.calls >= 3 * 10


def test_a_long_program_is_not_called_again() -> None:
    program = Program(for_ever(0.7))
    assert turns.latency(program, 0.7, SETTINGS) == 0.7
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
def test_slower(first: float, again: float, slow: float | None, calls: int) -> None:
    program = Program(for_ever(again))
    assert turns.slower(program, first, 0.01, SETTINGS) == (None if slow is None else pytest.approx(slow))
    assert program.calls == calls


def test_a_short_program_is_not_slower_for_waking_threads() -> None:
    """Its first call of each turn waits for them, and no other does."""

    def woken() -> Iterator[float]:
        yield 60e-6
        yield from for_ever(15e-6)

    program = Program(woken())
    assert turns.slower(program, 100e-6, 15e-6, SETTINGS) is None
    assert program.calls == 166  # a quarter of a repeat, if it is as fast as the best
    slow = Program(for_ever(60e-6))
    assert turns.slower(slow, 100e-6, 15e-6, SETTINGS) == pytest.approx(60e-6)


def test_without_a_best_nothing_is_slower() -> None:
    assert turns.slower(Program(for_ever(1.0)), 100.0, None, SETTINGS) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "ratio", "pairs"),
    [
        ([0.02] * 9, [0.03] * 9, 2 / 3, 9),  # faster: it has to be so for three times as many turns
        ([0.02, 0.02, 0.02] + [0.05] * 6, [0.03] * 9, 7 / 6, 6),  # it only seemed so at first
        ([0.02, 0.04, 0.02] * 3, [0.03] * 9, 1.0, 8),  # too many turns are lost for it to be more than luck: the last cannot help
        ([0.02, 0.06, 0.02], [0.02, 0.06, 0.02], 1.0, 3),  # the machine was slow in the second pair, for both
        ([0.02, 0.9, 0.02], [0.02] * 3, 1.0, 3),  # something else was, for one turn
    ],
)
def test_timed_in_turns(ours: list[float], theirs: list[float], ratio: float, pairs: int) -> None:
    first, second = Program(iter(ours)), Program(iter(theirs))
    assert turns.relative(first, second, (0.02, 0.02), SETTINGS) == pytest.approx(ratio)
    assert (first.calls, second.calls) == (pairs, pairs)


@pytest.mark.parametrize(
    ("best", "seconds", "pairs"),
    [
        (0.01, 0.02, 2),
        (0.01, 0.0125, 3),
        (0.01, 0.011, 3),
        (0.01, 0.0104, 5),
        (0.02, 0.022, 3),  # fewer turns, as they are longer
        (0.04, 0.05, 2),  # long turns are means by themselves
        (0.04, 0.08, 1),
    ],
)
def test_few_turns_are_enough_for_a_program_that_is_clearly_slower(best: float, seconds: float, pairs: int) -> None:
    ours, theirs = Program(for_ever(seconds)), Program(for_ever(best))
    assert turns.relative(ours, theirs, (best, best), replace(SETTINGS, repeats=5)) == pytest.approx(seconds / best)
    assert (ours.calls, theirs.calls) == (pairs, pairs)


def test_a_call_that_is_a_whole_turn_is_a_turn_of_the_first_pair() -> None:
    ours, theirs = Program(for_ever(0.08)), Program(for_ever(0.04))
    assert turns.beside(ours, 0.08, lambda: theirs, 0.04, SETTINGS) == pytest.approx(0.08)
    assert (ours.calls, theirs.calls) == (1, 1)


def test_a_program_that_takes_tenths_of_a_second_is_not_called_over_and_over() -> None:
    program = Program(for_ever(0.2))
    assert turns.latency(program, 0.25, SETTINGS) == pytest.approx(0.2)
    assert program.calls == 1


@pytest.mark.parametrize(
    ("preempted", "seconds", "found", "calls"),
    [
        ([], [0.001], 0.001, 1),
        ([0], [0.005, 0.001], 0.001, 2),  # the core was lost once, and the turn taken again
        ([0, 1, 2], [0.005, 0.002, 0.004], 0.002, 3),  # it always is: the shortest of a few
        ([0, 1, 2], [0.012, 0.011], 0.011, 2),  # as many as take no longer than a long turn
        ([0], [0.05], 0.05, 1),  # a long turn would be disturbed again
    ],
)
def test_turns_without_a_core_are_taken_again(preempted: list[int], seconds: list[float], found: float, calls: int) -> None:
    program = Program(iter(seconds), preempted)
    assert turns.undisturbed(program, 1) == pytest.approx(found)
    assert program.calls == calls


@pytest.mark.parametrize("name", TIMINGS)
def test_every_policy_tells_what_a_steady_program_takes_and_calls_no_long_one_again(name: str) -> None:
    program = Program(for_ever(0.001))
    assert TIMINGS[name](program, 0.002, None, None, SETTINGS) == pytest.approx(0.001)
    assert program.calls >= 20
    long = Program(for_ever(0.7))
    assert TIMINGS[name](long, 0.7, None, None, SETTINGS) == 0.7
    assert long.calls == 0


def test_turns_go_on_until_they_are_steady() -> None:
    assert not steady([1.0, 1.0])
    assert steady([1.0, 1.0, 1.0])
    assert not steady([1.0, 1.0, 2.0])
    # The fastest and the slowest of five do not count.
    assert steady([1.0, 1.01, 2.0, 1.0, 0.3])
    quiet, wild = Program(for_ever(0.001)), Program(cycle([0.001] * 10 + [0.003] * 10))
    for program in (quiet, wild):
        TIMINGS["cv"](program, 0.001, None, None, SETTINGS)
    assert quiet.calls < wild.calls


@pytest.mark.parametrize("name", TIMINGS)
def test_every_policy_ends_on_a_program_that_is_never_steady_and_tells_a_time_it_has_taken(name: str) -> None:
    wild = Program(cycle([0.0005, 0.004, 0.0001, 0.02, 0.001]))
    found = TIMINGS[name](wild, 0.001, None, None, SETTINGS)
    assert 0.0001 <= found <= 0.02
    assert wild.calls < 100_000
    again = Program(cycle([0.0005, 0.004, 0.0001, 0.02, 0.001]))
    assert TIMINGS[name](again, 0.001, None, None, SETTINGS) == found, "nothing is drawn at random"
