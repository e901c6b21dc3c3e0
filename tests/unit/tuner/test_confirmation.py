"""The last comparison of the best with the default program: what won while the machine was disturbed need not stay the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement, Seconds
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from ansorlite.tuner.clock import PhaseClock
from ansorlite.tuner.loop import CONFIRMING
from ansorlite.tuner.result import Stop
from ansorlite.tuner.state import TaskState
from tests.unit.tuner.fakes import FakeMeasurer, ListStrategy, PlainKeys, candidate, number, run, scale_task

DEFAULT = candidate(10_000)
EXTENTS = (8, 16, 24)


class DisturbedMeasurer(FakeMeasurer):
    """Times in turns with the best, as the real one. While another process runs, some programs suffer less than others.

    Args:
        seconds: of each program on a quiet machine.
        suffers: by how much each is slowed down while the machine is disturbed.
        disturbed: the measurements during which it is.
        noise: deviation of the logarithm of what a comparison says.
    """

    def __init__(
        self,
        seconds: dict[Candidate, float],
        suffers: dict[Candidate, float],
        disturbed: range,
        rng: np.random.Generator,
        noise: float = 0.01,
    ) -> None:
        super().__init__(lambda _: 1.0)
        self.seconds, self.suffers, self.disturbed, self.rng, self.noise = seconds, suffers, disturbed, rng, noise

    def measure(self, task: Task, candidates: Sequence[Candidate], best: Measurement | None) -> Iterator[Measurement]:
        for plain in super().measure(task, candidates, best):
            latency = self._now(plain.candidate)
            if best is not None and best.latency is not None and plain.candidate != NAIVE:
                latency *= best.latency / self._now(best.candidate)
            measured = replace(plain, latency=latency * float(np.exp(self.noise * self.rng.standard_normal())))
            if best is None or best.latency is None or (measured.latency or 0.0) < best.latency:
                best = measured
            yield measured

    def _now(self, item: Candidate) -> float:
        slowed = self.suffers[item] if len(self.asked) - 1 in self.disturbed else 1.0
        return self.seconds[item] * slowed


def states(count: int = 1) -> list[TaskState]:
    return [TaskState(scale_task(e), (1,), ListStrategy(), PlainKeys(), (DEFAULT,)) for e in EXTENTS[:count]]


def disturbed_measurer(seed: int, trials: int = 64) -> DisturbedMeasurer:
    """The default program is faster than all others, but suffers most; the machine is disturbed from some trial on to another."""
    rng = np.random.default_rng(seed)
    others = [candidate(n) for n in range(1000)]
    seconds = {DEFAULT: 1.0, NAIVE: 5.0, **dict(zip(others, rng.uniform(1.1, 1.7, len(others)), strict=True))}
    suffers = {DEFAULT: 2.0, NAIVE: 1.0, **dict(zip(others, rng.uniform(1.0, 1.1, len(others)), strict=True))}
    begin = int(rng.integers(2, trials // 2))
    return DisturbedMeasurer(seconds, suffers, range(begin, begin + trials // 3), rng)


@pytest.mark.parametrize("seed", range(8))
def test_what_was_the_best_while_disturbed_does_not_win(seed: int, tmp_path: Path) -> None:
    measurer = disturbed_measurer(seed)
    (state,) = states()
    result = run([state], 64, tmp_path / "a.db", measurer)
    fooled = min(result.history[:-1], key=lambda trial: trial.latency or 0.0).candidate
    assert measurer.seconds[fooled] > 1.0
    assert result.tasks[0].best == DEFAULT
    assert [item for _, item in measurer.asked].count(DEFAULT) == 2
    assert result.trials == 64


@pytest.mark.parametrize("seed", range(4))
def test_records_alone_give_the_same_answer(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    result = run(states(), 64, path, disturbed_measurer(seed))
    again = disturbed_measurer(seed)
    replayed = run(states(), 64, path, again)
    assert (again.opened, replayed.tasks[0].best, replayed.best_latency) == (0, DEFAULT, result.best_latency)
    with Database(path) as database:
        (state,) = states()
        best = database.best(state.task.key, state.task.target.key)
    assert best is not None
    assert (best.candidate, best.latency) == (DEFAULT, result.best_latency)


@pytest.mark.parametrize("seed", range(4))
def test_a_best_that_is_faster_stays(seed: int, tmp_path: Path) -> None:
    measurer = disturbed_measurer(seed)
    measurer.disturbed = range(0)
    measurer.seconds[candidate(20)] = 0.8
    result = run(states(), 64, tmp_path / "a.db", measurer)
    assert (result.tasks[0].best, result.history[-1].candidate) == (candidate(20), DEFAULT)


def test_a_default_that_won_by_luck_is_compared_with_the_second_best(tmp_path: Path) -> None:
    measurer = disturbed_measurer(0)
    measurer.disturbed = range(2, 63)
    measurer.suffers = {item: 1.0 if item == DEFAULT else 2.0 for item in measurer.seconds}
    measurer.seconds[candidate(3)] = 0.6
    result = run(states(), 64, tmp_path / "a.db", measurer)
    assert result.tasks[0].best == result.history[-1].candidate == candidate(3)
    assert result.tasks[0].best_latency < 0.7


def test_several_tasks_take_no_more_than_their_share(tmp_path: Path) -> None:
    for trials in (8, 20, 40, 64):
        measurer = disturbed_measurer(1)
        result = run(states(3), trials, tmp_path / f"{trials}.db", measurer)
        assert result.trials == trials
        assert len(measurer.asked) - len(set(measurer.asked)) == min(3, trials // CONFIRMING)


def test_more_trials_confirm_the_next_best(tmp_path: Path) -> None:
    path, measurer = tmp_path / "a.db", disturbed_measurer(0)
    measurer.disturbed = range(0)
    measurer.seconds[candidate(20)], measurer.seconds[candidate(70)] = 0.8, 0.5
    run(states(), 64, path, measurer)
    result = run(states(), 96, path, measurer)
    assert (result.tasks[0].best, result.history[-1].candidate, result.trials) == (candidate(70), DEFAULT, 96)
    assert [item for _, item in measurer.asked].count(DEFAULT) == 3


def test_a_failing_default_is_not_asked_again(tmp_path: Path) -> None:
    measurer = FakeMeasurer(lambda item: None if item == DEFAULT else 1.0 / (1 + number(item)) if item != NAIVE else 2.0)
    result = run(states(), 32, tmp_path / "a.db", measurer)
    assert [item for _, item in measurer.asked].count(DEFAULT) == 1
    assert result.tasks[0].best == candidate(28)
    assert result.history[-1].candidate == candidate(27)


def test_the_time_limit_leaves_room_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measurer = disturbed_measurer(0)
    # Every measurement takes a second, and nothing else any.
    monkeypatch.setattr(PhaseClock, "elapsed", property(lambda _: float(len(measurer.asked))))
    result = run(states(), 10**6, tmp_path / "a.db", measurer, time_limit=65.0)
    assert (result.stopped, result.trials, result.tasks[0].best) == (Stop.TIME, 61, DEFAULT)
    assert len(measurer.asked) - len(set(measurer.asked)) == 1


class SlowInTurns(DisturbedMeasurer):
    """A program takes a second to measure, but eight in turns with one that is about as fast."""

    spent = 0.0

    def measure(self, task: Task, candidates: Sequence[Candidate], best: Measurement | None) -> Iterator[Measurement]:
        for plain in super().measure(task, candidates, best):
            near = best is not None and best.latency is not None and (plain.latency or 0.0) < 1.2 * best.latency
            took = 8.0 if near else 1.0
            self.spent += took
            yield replace(plain, seconds=Seconds(0.0, took, 0.0))


@pytest.mark.parametrize(("limit", "confirmed"), [(40.0, 0), (48.0, 0), (64.0, 0), (80.0, 1), (96.0, 1)])
def test_it_ends_within_the_limit(limit: float, confirmed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = disturbed_measurer(0)
    measurer = SlowInTurns(quiet.seconds, quiet.suffers, quiet.disturbed, quiet.rng)
    monkeypatch.setattr(PhaseClock, "elapsed", property(lambda _: measurer.spent))
    result = run(states(), 10**6, tmp_path / "a.db", measurer, time_limit=limit)
    assert (result.stopped, measurer.spent <= limit) == (Stop.TIME, True)
    assert len(measurer.asked) - len(set(measurer.asked)) == confirmed
