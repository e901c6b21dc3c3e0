"""The schedulers on curves that real tuning gave, in shares of the sizes that the tuner hands out."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ansorlite.task_scheduler import GradientScheduler, GradientSettings, RoundRobin, TaskInfo, TaskScheduler
from ansorlite.task_scheduler.bandit import CurveBandit
from ansorlite.tuner.loop import MAX_ROUND, MIN_ROUND
from tests.unit.task_scheduler.recorded import Recorded, recorded

TASKS = recorded()
#: How often a model uses each task: 25 models.
USES = tuple(np.round(2 ** np.random.default_rng(seed).uniform(0, 4, len(TASKS))) for seed in range(25))
TRIALS = 24 * len(TASKS)


def play(scheduler: TaskScheduler, tasks: Sequence[Recorded], trials: int) -> list[int]:
    """Which task each trial went to, after one of each task as written."""
    used = [1] * len(tasks)
    given: list[int] = []
    for position, task in enumerate(tasks):
        scheduler.update(position, task.best[0], 1)
    while len(given) < trials - len(tasks) and (share := scheduler.next()) is not None:
        position = share.task
        left = trials - len(tasks) - len(given)
        size = MIN_ROUND if used[position] < MIN_ROUND else max(MIN_ROUND, min(MAX_ROUND, left // (2 * len(tasks))))
        size = share.trials or size
        size = min(size, left, len(tasks[position].best) - used[position])
        used[position] += size
        given += [position] * size
        scheduler.update(position, tasks[position].best[used[position] - 1], size)
    return given


def totals(tasks: Sequence[Recorded], uses: np.ndarray, given: Sequence[int], trials: int) -> np.ndarray:
    """The latency of the model after each trial; after the last it stays."""
    used = [0] * len(tasks)
    found = []
    for position in given:
        used[position] += 1
        found.append(sum(n * task.best[count] for n, task, count in zip(uses, tasks, used, strict=True)))
    return np.array(found + [found[-1]] * (trials - len(tasks) - len(given)))


def areas(make: Callable[[Sequence[TaskInfo]], TaskScheduler], begin: int = 0) -> np.ndarray:
    """For each model, the area under its latency curve, above what its tasks ever reached."""
    found = []
    for uses in USES:
        infos = [TaskInfo((float(n),), task.flops, task.tag) for n, task in zip(uses, TASKS, strict=True)]
        floor = sum(n * task.best[-1] for n, task in zip(uses, TASKS, strict=True))
        found.append((totals(TASKS, uses, play(make(infos), TASKS, TRIALS), TRIALS) - floor)[begin:].sum())
    return np.array(found)


def test_the_area_under_the_latency_curve_is_a_fifth_smaller_than_in_turns() -> None:
    ratios = areas(GradientScheduler) / areas(RoundRobin)
    assert ratios.max() < 0.8  # of every one of the models
    assert ratios.mean() < 0.5


def test_that_is_so_after_the_first_shares_too() -> None:
    """Then the programs as written, which are slower by orders of magnitude, count no more."""
    begin = MIN_ROUND * len(TASKS)
    ratios = areas(GradientScheduler, begin) / areas(RoundRobin, begin)
    assert ratios.mean() < 0.85


def test_the_bandit_is_as_good_as_the_gradient_and_better_than_taking_turns() -> None:
    """What DynaTune's card asks: an area of 0.9 of taking turns, and no more than the gradient's on 15 of 25 models."""
    begin = MIN_ROUND * len(TASKS)
    bandit = areas(CurveBandit, begin)
    assert (bandit / areas(RoundRobin, begin)).mean() <= 0.9
    assert np.count_nonzero(bandit <= areas(GradientScheduler, begin)) >= 15


def test_no_task_starves() -> None:
    for uses in USES:
        infos = [TaskInfo((float(n),), task.flops, task.tag) for n, task in zip(uses, TASKS, strict=True)]
        given = play(GradientScheduler(infos), TASKS, TRIALS)
        assert len(given) == TRIALS - len(TASKS)
        assert min(np.bincount(given, minlength=len(TASKS))) >= MIN_ROUND
        total = sum(n * task.best[-1] for n, task in zip(uses, TASKS, strict=True))
        for position, (n, task) in enumerate(zip(uses, TASKS, strict=True)):
            share = n * task.best[-1] / total
            assert given.count(position) >= min(len(task.best) - 1, share * TRIALS / 3)


@pytest.mark.parametrize("below", [0.01, 0.002])
def test_what_stopping_early_costs(below: float) -> None:
    """Trials are saved, and the model is slower by little for each that was not made."""
    for uses in USES:
        infos = [TaskInfo((float(n),)) for n in uses]
        all_trials = sum(len(task.best) for task in TASKS)
        given = play(GradientScheduler(infos, settings=GradientSettings(stop_below=below)), TASKS, all_trials)
        reached = totals(TASKS, uses, given, all_trials)[-1]
        best = sum(n * task.best[-1] for n, task in zip(uses, TASKS, strict=True))
        assert len(given) < 0.8 * all_trials
        assert reached / best - 1 < 5 * below
