"""Objectives over several models: their values, their derivatives, and what the scheduler makes of them."""

from collections.abc import Sequence

import numpy as np
import pytest

from ansorlite.errors import ArgumentError
from ansorlite.task_scheduler import OBJECTIVES, Goal, GradientScheduler, GradientSettings, Objective, TaskInfo, objective_of
from tests.unit.task_scheduler.test_schedulers import decay, play

GOALS = (Goal(2.0, bound=3e-3), Goal(1.0), Goal(0.5, bound=1e-3))
LATENCIES = np.array([4e-3, 2e-3, 0.5e-3])


def _objective(name: str) -> Objective:
    return OBJECTIVES[name](GOALS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("latency", 2 * 4e-3 + 2e-3 + 0.5 * 0.5e-3),
        ("bounds", 2 * 4e-3 + 2e-3 + 0.5 * 1e-3),
        ("geomean", (4e-3**2 * 2e-3 * 0.5e-3**0.5) ** (1 / 3.5)),
    ],
)
def test_the_value(name: str, value: float) -> None:
    assert _objective(name)(LATENCIES) == pytest.approx(value)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_slopes_are_derivatives(name: str) -> None:
    objective, step = _objective(name), 1e-9
    for model, slope in enumerate(objective.slopes(LATENCIES)):
        moved = [objective(LATENCIES + sign * step * np.eye(3)[model]) for sign in (1, -1)]
        assert slope == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-4, abs=1e-9)


def test_references_are_what_speed_ups_are_told_against() -> None:
    objective = objective_of("geomean", [Goal(reference=8e-3), Goal(reference=8e-3), Goal(reference=8e-3)])
    assert 1 / objective(LATENCIES) == pytest.approx(np.cbrt(2 * 4 * 16))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_models_of_which_nothing_runs_yet_leave_the_others_their_slopes(name: str) -> None:
    objective, latencies = _objective(name), np.array([4e-3, 0.0, 0.0])
    assert np.isfinite(objective(latencies))
    assert objective.slopes(latencies)[0] > 0
    assert np.all(np.isfinite(objective.slopes(np.zeros(3))))


@pytest.mark.parametrize(
    ("name", "goals", "message"),
    [
        ("speed", [Goal()], "the objectives are: latency, bounds, geomean"),
        ("bounds", [Goal(), Goal()], "needs the bound of a model"),
        ("latency", [Goal(bound=1.0)], "choose objective 'bounds'"),
        ("bounds", [Goal(bound=1.0, reference=1.0)], "choose objective 'geomean'"),
    ],
)
def test_goals_that_do_not_fit(name: str, goals: Sequence[Goal], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        objective_of(name, goals)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan")])
def test_goals_are_positive(bad: float) -> None:
    with pytest.raises(ArgumentError, match="must be a number greater than 0"):
        Goal(bound=bad)


FIRST, SECOND, BOTH = (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)


def test_a_model_that_is_fast_enough_gets_no_more() -> None:
    fast = decay(50e-3, 1e-3, 2)
    scheduler = GradientScheduler([TaskInfo(FIRST), TaskInfo(SECOND)], objective_of("bounds", [Goal(bound=10e-3), Goal()]))
    given = play(scheduler, [fast, decay(1e-4, 1e-5, 5)], 40)
    assert given.count(0) == 1 + next(share for share, latency in enumerate(fast) if latency < 10e-3)
    assert len(given) == 40


def test_tuning_ends_when_every_model_is_fast_enough() -> None:
    bounds = objective_of("bounds", [Goal(bound=10e-3), Goal(bound=1.0)])
    scheduler = GradientScheduler([TaskInfo(FIRST), TaskInfo(SECOND)], bounds)
    scheduler.update(1, 0.5, 1)
    given = play(scheduler, [decay(50e-3, 1e-3, 2), [0.5]], 40)
    assert given == [0] * len(given)
    assert len(given) < 10
    assert scheduler.expected_gain() == 0


def test_the_geometric_mean_cares_for_small_models_too() -> None:
    curves = [[1.0], [1e-3]]
    counts = {
        name: play(GradientScheduler([TaskInfo(FIRST), TaskInfo(SECOND)], _pair(name)), curves, 60).count(1)
        for name in ("latency", "geomean")
    }
    assert counts["latency"] <= 3
    assert counts["geomean"] == 30


def _pair(name: str) -> Objective:
    return objective_of(name, [Goal(), Goal()])


def test_a_shared_task_counts_in_both_models() -> None:
    tasks = [TaskInfo(FIRST), TaskInfo(BOTH), TaskInfo(SECOND)]
    for name in ("latency", "geomean"):
        given = play(GradientScheduler(tasks, _pair(name)), [[1.0]] * 3, 80)
        assert given.count(1) > 1.3 * max(given.count(0), given.count(2))


def test_weights_of_models_count() -> None:
    objective = objective_of("latency", [Goal(4.0), Goal()])
    given = play(GradientScheduler([TaskInfo(FIRST), TaskInfo(SECOND)], objective), [[1.0], [1.0]], 60)
    assert given.count(0) == pytest.approx(48, abs=1)  # shares go with the weights


def test_a_task_that_does_not_improve_any_more_is_left_alone() -> None:
    still, falling = [2.0, 1.0], decay(1.0, 0.1, 30, 200)
    scheduler = GradientScheduler([TaskInfo(), TaskInfo()], settings=GradientSettings(stop_below=1e-3))
    given = play(scheduler, [still, falling], 60)
    assert given.count(0) <= 9
    assert len(given) == 60


def test_tuning_stops_when_little_is_expected() -> None:
    curves = [decay(1.0, 0.1, 2, 400), decay(0.5, 0.4, 1, 400)]
    lengths = [
        len(play(GradientScheduler([TaskInfo(), TaskInfo()], settings=GradientSettings(stop_below=below)), curves, 300))
        for below in (0.1, 0.01, 1e-4, 0.0)
    ]
    assert sorted(set(lengths)) == lengths
    assert lengths[-1] == 300
    assert lengths[-2] < 200


def test_a_task_too_small_to_matter_gets_nothing() -> None:
    scheduler = GradientScheduler([TaskInfo(), TaskInfo()], settings=GradientSettings(stop_below=1e-3))
    for task, naive in enumerate((1.0, 1e-4)):
        scheduler.update(task, naive, 1)
    assert set(play(scheduler, [decay(1.0, 0.5, 5), [1e-5]], 10)) == {0}
