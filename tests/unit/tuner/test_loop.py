"""The loop against stand-ins for the parts it joins."""

from __future__ import annotations

import math
import signal
import sqlite3
from pathlib import Path

import pytest

from ansorlite.errors import ArgumentError, TuningError
from ansorlite.records.database import Database, TaskEntry
from ansorlite.records.measurement import Measurement, Outcome, Record
from ansorlite.search import Observation
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.te.serialize import dump
from ansorlite.tuner.clock import PhaseClock
from ansorlite.tuner.events import Event, Finished, Measured, RoundFinished, Started
from ansorlite.tuner.result import Stop
from ansorlite.tuner.state import TaskState
from tests.interrupts import interruptible
from tests.unit.tuner.fakes import FakeMeasurer, ListStrategy, PlainKeys, candidate, formula, run, scale_task


def state(extent: int = 8, weight: int = 1, size: int = 1000, first: tuple[Candidate, ...] = ()) -> TaskState:
    return TaskState(scale_task(extent), (weight,), ListStrategy(size), PlainKeys(), first)


def test_naive_is_measured_first_and_the_best_is_kept(tmp_path: Path) -> None:
    result = run([state()], 20, tmp_path / "a.db")
    assert result.history[0].candidate == NAIVE
    assert result.trials == len(result.history) == 20
    (task,) = result.tasks
    assert (task.naive, task.best, task.best_latency) == (1.0, candidate(18), 0.5 / 19)
    assert task.errors == 2
    assert result.best_latency == task.best_latency


def test_history_says_why_a_trial_has_no_latency(tmp_path: Path) -> None:
    result = run([state()], 10, tmp_path / "a.db")
    (failed,) = [trial for trial in result.history if trial.latency is None]
    assert (failed.candidate, failed.outcome, failed.error) == (candidate(6), Outcome.CRASH, "it crashed")
    assert all(trial.error is None for trial in result.history if trial.latency is not None)


def test_tasks_share_the_trials_and_weights_count(tmp_path: Path) -> None:
    result = run([state(8, 3), state(16, 2)], 30, tmp_path / "a.db")
    first, second = result.tasks
    assert first.trials + second.trials == 30
    assert min(first.trials, second.trials) >= 10
    assert result.best_latency == pytest.approx(3 * first.best_latency + 2 * second.best_latency)
    assert result.naive_latency == 5.0


def test_first_candidates_come_before_naive(tmp_path: Path) -> None:
    default = candidate(777)
    result = run([state(first=(default,))], 5, tmp_path / "a.db")
    assert [trial.candidate for trial in result.history[:3]] == [default, NAIVE, candidate(0)]


def test_where_the_default_does_not_run_the_next_that_does_comes_before_naive(tmp_path: Path) -> None:
    crashing, also, running, never = (candidate(number) for number in (6, 13, 500, 501))
    one = state(first=(crashing,))
    one.spare = lambda: (crashing, also, running, never)
    result = run([one], 5, tmp_path / "a.db")
    assert [trial.candidate for trial in result.history] == [crashing, also, running, NAIVE, candidate(0)]
    other = state(16, first=(running,))
    other.spare = lambda: pytest.fail("the first one runs")
    assert run([other], 3, tmp_path / "a.db").history[1].candidate == NAIVE


@pytest.mark.parametrize(
    ("estimate", "trials", "limit", "timed"),
    [(0.4, 120, 10.0, True), (0.6, 120, 10.0, False), (0.4, 60, 10.0, False), (0.5, 120, None, True), (0.7, 120, None, False)],
)
def test_loops_as_written_take_little_of_the_time_or_none(
    estimate: float, trials: int, limit: float | None, timed: bool, tmp_path: Path
) -> None:
    slow = state()
    slow.naive_estimate = lambda: estimate
    result = run([slow], trials, tmp_path / "a.db", time_limit=limit)
    assert any(trial.candidate == NAIVE for trial in result.history) == math.isfinite(result.naive_latency) == timed
    assert result.best_latency < 1.0


def test_the_same_command_again_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run([state()], 10, path)
    measurer, again = FakeMeasurer(), state()
    result = run([again], 25, path, measurer)
    assert result.restored == 10
    assert result.trials == 25
    assert len(measurer.asked) == 15
    with Database(path) as database:
        candidates = [record.measurement.candidate for record in database.records()]
    assert len(set(candidates)) == len(candidates) == 25
    assert isinstance(again.strategy, ListStrategy)
    assert len(again.strategy.observed) == 25


def test_when_all_is_done_nothing_is_started(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    before = run([state()], 10, path)
    measurer = FakeMeasurer()
    result = run([state()], 10, path, measurer)
    assert (measurer.opened, result.trials, result.restored) == (0, 10, 10)
    assert result.best_latency == before.best_latency


def test_records_of_another_version_do_not_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.db"
    run([state()], 10, path)
    other = state()
    other.keys = PlainKeys(kinds=("another",))
    result = run([other], 10, path)
    assert result.restored == 1
    assert "do not apply: 9" in caplog.text


def test_a_small_space_ends_the_tuning(tmp_path: Path) -> None:
    result = run([state(size=5), state(16, size=3)], 1000, tmp_path / "a.db")
    assert [task.trials for task in result.tasks] == [6, 4]


def test_ctrl_c_keeps_every_record(tmp_path: Path) -> None:
    def interrupted(item: Candidate) -> float | None:
        if item == candidate(5):
            raise KeyboardInterrupt
        return 1.0

    path, measurer = tmp_path / "a.db", FakeMeasurer(interrupted)
    result = run([state()], 100, path, measurer)
    assert result.interrupted
    assert result.trials == 6
    assert measurer.closed == 1
    assert result.tasks[0].best is not None
    with Database(path) as database:
        assert len(database.records()) == 6


class _Finalized:
    """Ctrl-C arrives while it is finalized, where Python only prints what is raised."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


class _Interrupting(list[Event]):
    """Events; Ctrl-C arrives with the first of a kind after so many, and is lost."""

    def __init__(self, kind: type[Event], after: int) -> None:
        super().__init__()
        self._kind, self._after = kind, after

    def append(self, event: Event) -> None:
        super().append(event)
        if len(self) > self._after and isinstance(event, self._kind):
            _Finalized()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("kind", "after", "trials"), [(Measured, 5, 5), (RoundFinished, 20, 20)])
def test_ctrl_c_is_not_lost_in_a_finalizer(tmp_path: Path, kind: type[Event], after: int, trials: int) -> None:
    with interruptible():
        result = run([state()], 20, tmp_path / "a.db", events=_Interrupting(kind, after))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert result.interrupted
    assert result.trials == trials
    with Database(tmp_path / "a.db") as database:
        assert len(database.records()) == result.trials


def test_no_program_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TuningError, match="not even the loops as written: it crashed"):
        run([state()], 10, tmp_path / "a.db", FakeMeasurer(lambda _: None))


def test_a_failing_naive_program_does_not_stop_the_others(tmp_path: Path) -> None:
    measurer = FakeMeasurer(lambda item: None if item == NAIVE else 1.0)
    result = run([state()], 10, tmp_path / "a.db", measurer)
    assert result.tasks[0].naive is None
    assert math.isinf(result.naive_latency)
    assert result.best_latency == 1.0


def test_the_time_limit_ends_the_tuning(tmp_path: Path) -> None:
    result = run([state()], 10**6, tmp_path / "a.db", time_limit=0.05)
    assert 1 <= result.trials < 10**6


@pytest.mark.parametrize(("limit", "trials"), [(50.0, 0), (80.0, 2)])
def test_what_was_over_before_the_first_trial_counts(
    limit: float, trials: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurer, clock = FakeMeasurer(), PhaseClock()
    monkeypatch.setattr(PhaseClock, "elapsed", property(lambda _: 60.0 + 10.0 * len(measurer.asked)))
    result = run([state()], 10, tmp_path / "a.db", measurer, time_limit=limit, clock=clock)
    assert (result.stopped, result.trials, result.seconds) == (Stop.TIME, trials, 60.0 + 10.0 * trials)


@pytest.mark.parametrize(("limit", "trials"), [(66.0, 6), (62.0, 5)])
def test_no_program_is_begun_that_would_end_after_the_limit(
    limit: float, trials: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurer = FakeMeasurer()
    # Every program runs for ten seconds and nothing else takes any; a sixteenth of the limit is kept for confirming.
    for seconds in ("elapsed", "alone"):
        monkeypatch.setattr(PhaseClock, seconds, property(lambda _: 10.0 * len(measurer.asked)))
    result = run([state()], 10**6, tmp_path / "a.db", measurer, time_limit=limit)
    assert (result.stopped, result.trials) == (Stop.TIME, trials)


@pytest.mark.parametrize(("latency", "trials"), [(2.0, 2), (2.5, 1)])
def test_a_program_runs_beside_the_best(latency: float, trials: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes a call of both, however short the first one was, which ran alone."""
    measurer = FakeMeasurer(lambda _: latency)
    monkeypatch.setattr(PhaseClock, "elapsed", property(lambda _: 5.0 * len(measurer.asked)))
    result = run([state()], 10**6, tmp_path / "a.db", measurer, time_limit=10.0)
    assert (result.stopped, result.trials) == (Stop.TIME, trials)


def test_the_phases_add_up_to_the_seconds(tmp_path: Path) -> None:
    result = run([state()], 50, tmp_path / "a.db")
    assert set(result.phases) == {"search", "compile", "measure", "check", "other"}
    assert sum(result.phases.values()) == pytest.approx(result.seconds)


def test_events_tell_everything_in_order(tmp_path: Path) -> None:
    events: list[Event] = []
    result = run([state()], 10, tmp_path / "a.db", events=events)
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert events[-1].result == result
    assert tuple(event.trial for event in events if isinstance(event, Measured)) == result.history
    assert [event.round for event in events if isinstance(event, RoundFinished)] == list(range(1, 4))


def imported(path: Path, latencies: dict[Candidate, float]) -> None:
    """Records of another machine."""
    task = scale_task()
    records = [
        Record(0, task.key, task.target.key, Measurement(item, Outcome.OK, latency=latency, checked=True, when=float(n)), "")
        for n, (item, latency) in enumerate(latencies.items())
    ]
    with Database(path) as database:
        database.merge([TaskEntry(task.key, dump(task.dag), 0.0)], records)


def test_a_lie_of_another_machine_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    imported(tmp_path / "a.db", {candidate(3): 1e-12})
    measurer, tuned = FakeMeasurer(), state()
    result = run([tuned], 24, tmp_path / "a.db", measurer)
    assert (result.restored, result.trials, len(measurer.asked)) == (0, 24, 24)
    assert all(best is None or best >= 0.5 / 100 for best in measurer.bests)  # nobody was compared with the lie
    assert result.best_latency == formula(candidate(22))
    assert measurer.asked[0][1] == candidate(3)  # measured at once, and once
    assert isinstance(tuned.strategy, ListStrategy)
    assert Observation(candidate(3), 1e-12) not in tuned.strategy.observed
    assert "records that were made on another machine: 1;" in caplog.text


def test_of_many_records_of_another_machine_the_best_are_measured_first(tmp_path: Path) -> None:
    imported(tmp_path / "a.db", {candidate(n): 100.0 - n for n in range(50, 60)})
    measurer = FakeMeasurer()
    run([state(first=(candidate(777),))], 6, tmp_path / "a.db", measurer)
    assert [item for _, item in measurer.asked[:5]] == [candidate(n) for n in (777, 59, 58, 57)] + [NAIVE]


def test_damaged_records_are_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.db"
    run([state()], 10, path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE measurements SET latency = 'soon' WHERE id IN (2, 3)")
    result = run([state()], 10, path)
    assert (result.restored, result.trials) == (8, 10)
    assert caplog.text.count("damaged rows that are left out") == 1
    assert "damaged rows that are left out: 2" in caplog.text


@pytest.mark.parametrize("given", [None, "rows", 3, [1, 2], [(1, 2)], ["schedule"] * 200])
def test_a_strategy_that_proposes_rubbish_is_told_so_in_a_sentence(given: object, tmp_path: Path) -> None:
    class Rubbish(ListStrategy):
        def propose(self, _: int) -> list[Candidate]:
            return given  # type: ignore[return-value]

    tuned = state()
    tuned.strategy = Rubbish()
    with pytest.raises(ArgumentError, match=r"^the strategy proposed .*; it must give a list of at most \d+ candidates, each as"):
        run([tuned], 24, tmp_path / "a.db", FakeMeasurer())


def test_more_than_was_asked_for_is_no_proposal(tmp_path: Path) -> None:
    class Many(ListStrategy):
        def propose(self, n: int) -> list[Candidate]:
            return super().propose(n + 1)

    tuned = state()
    tuned.strategy = Many()
    with pytest.raises(ArgumentError, match=r"a list of at most \d+ candidates"):
        run([tuned], 24, tmp_path / "a.db", FakeMeasurer())
