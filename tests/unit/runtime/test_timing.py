"""The timing loop, on a clock of its own making."""

from dataclasses import dataclass, field

import pytest

from ansorlite.runtime import timing
from ansorlite.runtime.timing import TimingSettings, measure, turns_for


@dataclass
class Machine:
    """A program that takes ``seconds`` a call of a clock that nothing else moves; the first call takes ``warm_up`` more."""

    seconds: float
    warm_up: float = 0.0
    now: float = 0.0
    counts: list[int] = field(default_factory=list)

    def perf_counter(self) -> float:
        return self.now

    def run(self, count: int) -> float:
        taken = count * self.seconds + (self.warm_up if not self.counts else 0.0)
        self.now += taken
        self.counts.append(count)
        return taken


def timed(monkeypatch: pytest.MonkeyPatch, machine: Machine, settings: TimingSettings) -> timing.Timing:
    monkeypatch.setattr(timing.time, "perf_counter", machine.perf_counter)
    return measure(machine.run, settings)


def test_short_programs_run_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(5e-6, warm_up=1e-3)
    result = timed(monkeypatch, machine, TimingSettings())
    assert result.median == pytest.approx(5e-6)
    assert machine.counts[-1] == pytest.approx(400, abs=2)
    assert machine.now >= 0.1


def test_long_programs_run_as_seldom_as_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(0.5, warm_up=2.0)
    result = timed(monkeypatch, machine, TimingSettings())
    assert result.repeats == pytest.approx((0.5,) * 5)


def test_turns_are_as_many_as_fill_the_time() -> None:
    asked: list[int] = []

    def taken(turns: int) -> float:
        asked.append(turns)
        return 1e-6 * turns

    assert 0.5e-3 <= 1e-6 * turns_for(taken, 1e-3) <= 1e-3
    assert asked[0] == 1
    assert turns_for(lambda turns: 2.0 * turns, 1e-3) == 1


def test_cold_caches_mean_one_call_a_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(1e-3)
    timed(monkeypatch, machine, TimingSettings(flush_bytes=1 << 10))
    assert set(machine.counts) == {1}


def test_a_first_turn_that_takes_long_is_not_counted() -> None:
    """As the one that starts a team's threads does."""
    begun: list[int] = []

    def taken(turns: int) -> float:
        begun.append(turns)
        return 1e-6 * turns + (1e-2 if len(begun) == 1 else 0.0)

    assert 0.5e-3 <= 1e-6 * turns_for(taken, 1e-3) <= 1e-3
