"""Several models tuned together, with stand-ins for what is joined: shared tasks, why it stops, and going on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ansorlite import te
from ansorlite.errors import ArgumentError
from ansorlite.records.database import Database
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.target import host
from ansorlite.task import Task
from ansorlite.task_scheduler import Goal, GradientScheduler, GradientSettings, Objective, TaskInfo, objective_of
from ansorlite.tuner.events import Event, RoundFinished
from ansorlite.tuner.loop import MAX_ROUND, Tuner
from ansorlite.tuner.result import Stop, TuneResult
from ansorlite.tuner.state import TaskState
from ansorlite.tuner.workload import parts_of, tasks_of
from tests.unit.tuner.fakes import FakeMeasurer, ListStrategy, PlainKeys, number, scale_task

FIRST, SECOND, BOTH = (2, 0), (0, 1), (1, 3)


def run(
    path: Path, trials: int, objective: Objective, below: float = 0.0, measurer: FakeMeasurer | None = None
) -> tuple[TuneResult, list[Event]]:
    """Three tasks of two models, of which one task is shared."""
    states = [TaskState(scale_task(8 * n), uses, ListStrategy(), PlainKeys()) for n, uses in ((1, FIRST), (2, SECOND), (3, BOTH))]
    infos = [TaskInfo(state.uses) for state in states]
    events: list[Event] = []
    with Database(path) as database:
        tuner = Tuner(
            states,
            trials=trials,
            time_limit=None,
            database=database,
            scheduler=GradientScheduler(infos, objective, GradientSettings(stop_below=below)),
            open_measurer=measurer or FakeMeasurer(),
            listener=events.append,
        )
        return tuner.run(), events


def plateau(item: Candidate) -> float:
    return 1.0 if item == NAIVE else max(0.1, 0.5 / (1 + number(item)))


def test_latencies_by_model(tmp_path: Path) -> None:
    result, _ = run(tmp_path / "a.db", 60, objective_of("latency", [Goal(), Goal()]))
    best = [task.best_latency for task in result.tasks]
    assert result.model_latencies == pytest.approx((2 * best[0] + best[2], best[1] + 3 * best[2]))
    assert result.naive_model_latencies == (3.0, 4.0)
    assert [task.weight for task in result.tasks] == [2, 1, 4]
    assert result.stopped is Stop.TRIALS


def test_it_stops_when_little_is_expected_and_goes_on_when_less_is_enough(tmp_path: Path) -> None:
    objective, path = objective_of("latency", [Goal(), Goal()]), tmp_path / "a.db"
    first, events = run(path, 5000, objective, 0.02, FakeMeasurer(plateau))
    assert first.stopped is Stop.GAIN
    assert first.expected_gain < 0.02
    gains = [event.expected_gain for event in events if isinstance(event, RoundFinished)]
    assert gains[-1] == first.expected_gain
    again, _ = run(path, 5000, objective, 0.02, FakeMeasurer(plateau))
    assert (again.restored, again.stopped) == (first.trials, Stop.GAIN)
    assert again.trials <= first.trials + 3 * MAX_ROUND  # shares are not recorded: a round of each task is soon made
    more, _ = run(path, again.trials + 40, objective, 0.0, FakeMeasurer(plateau))
    assert (more.trials, more.restored, more.stopped) == (again.trials + 40, again.trials, Stop.TRIALS)


def test_it_stops_when_every_model_is_below_its_bound(tmp_path: Path) -> None:
    result, _ = run(tmp_path / "a.db", 5000, objective_of("bounds", [Goal(bound=0.5), Goal(bound=0.5)]))
    assert result.stopped is Stop.GAIN
    assert all(latency <= 0.5 for latency in result.model_latencies)
    assert result.trials < 100


def test_a_task_that_several_parts_use_is_one_task() -> None:
    a, b, same = scale_task(8), scale_task(16), scale_task(8)
    tasks = tasks_of(parts_of([a, b, same]))
    assert [(task.key, uses) for task, uses in tasks] == [(a.key, (1, 0, 1)), (b.key, (0, 1, 0))]
    assert parts_of(a) == (a,)


def test_parts_must_be_some_and_for_one_target() -> None:
    with pytest.raises(ArgumentError, match="no task to tune"):
        parts_of([])
    for other in (None, "model.onnx", [scale_task(), None], list(scale_task().dag.inputs)):
        with pytest.raises(ArgumentError, match=r"is neither a task nor a model; make one with al.Task"):
            parts_of(other)  # type: ignore[arg-type]
    x = te.placeholder((4,), name="x")
    twice = te.compute((4,), lambda i: x[i] * 2.0, name="twice")
    with pytest.raises(ArgumentError, match="different targets"):
        tasks_of([scale_task(), Task([x, twice], dataclasses.replace(host(), threads=99))])
