"""Schedulers on curves that are known in full: the latency of each task after each share."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ansorlite import task_scheduler
from ansorlite.task_scheduler import Goal, GradientScheduler, SchedulerMaker, Share, TaskInfo, TaskScheduler, objective_of
from ansorlite.task_scheduler.bandit import CurveBandit, expected
from ansorlite.task_scheduler.siblings import FamilyScheduler


def of_one_model(make: SchedulerMaker) -> Callable[[Sequence[TaskInfo]], TaskScheduler]:
    return lambda tasks: make(tasks, objective_of("latency", [Goal()]), 0.0)


SCHEDULERS = [of_one_model(make) for make in task_scheduler.SCHEDULERS.values()]
Curves = Sequence[Sequence[float | None]]


def play(scheduler: TaskScheduler, curves: Curves, shares: int) -> list[int]:
    """Hand out shares; a task at the end of its curve stays there. Returns who got each."""
    given: list[int] = []
    for _ in range(shares):
        share = scheduler.next()
        if share is None:
            break
        task = share.task
        latency = curves[task][min(given.count(task), len(curves[task]) - 1)]
        given.append(task)
        scheduler.update(task, latency, 16)
    return given


def area(tasks: Sequence[TaskInfo], curves: Curves, given: Sequence[int], begin: int) -> float:
    """The sum of the total latency after each share from the ``begin``-th on."""
    total = 0.0
    for end in range(begin, len(given) + 1):
        counts = [given[:end].count(task) for task in range(len(tasks))]
        total += sum(
            info.uses[0] * curve[min(count, len(curve)) - 1] for info, curve, count in zip(tasks, curves, counts, strict=True)
        )
    return total


def decay(start: float, floor: float, pace: float, shares: int = 60) -> list[float]:
    return [floor + (start - floor) * float(np.exp(-share / pace)) for share in range(shares)]


def test_gradient_lowers_the_total_sooner_than_round_robin() -> None:
    rng = np.random.default_rng(0)
    better = []
    for _ in range(20):
        tasks = [TaskInfo((float(rng.integers(1, 8)),)) for _ in range(8)]
        starts = 10 ** rng.uniform(-4, -1.5, 8)
        curves = [decay(start, start * rng.uniform(0.05, 0.9), rng.uniform(1, 6)) for start in starts]
        areas = [area(tasks, curves, play(make(tasks), curves, 48), 8) for make in SCHEDULERS]
        better.append(areas[0] / areas[1])
    assert max(better) < 1.02  # never much worse
    assert np.mean(better) < 0.95


@pytest.mark.parametrize("make", SCHEDULERS)
def test_every_task_comes_once_first(make: Callable[[Sequence[TaskInfo]], TaskScheduler]) -> None:
    curves = [decay(10.0**-task, 1e-6, 3) for task in range(5)]
    assert sorted(play(make([TaskInfo()] * 5), curves, 5)) == list(range(5))


@pytest.mark.parametrize("make", SCHEDULERS)
def test_a_dead_task_gets_nothing_more(make: Callable[[Sequence[TaskInfo]], TaskScheduler]) -> None:
    given = play(make([TaskInfo()] * 3), [decay(1, 0.1, 3), [None], decay(1, 0.1, 3)], 40)
    assert given.count(1) == 1
    assert len(given) == 40
    assert play(make([TaskInfo()] * 2), [[None], [None]], 40) == [0, 1]
    assert make([]).next() is None


@pytest.mark.parametrize("make", SCHEDULERS)
def test_a_task_with_nothing_left_to_try_is_retired(make: Callable[[Sequence[TaskInfo]], TaskScheduler]) -> None:
    scheduler = make([TaskInfo(), TaskInfo((100.0,))])
    play(scheduler, [[1.0], [1.0]], 4)
    scheduler.update(1, 1.0, 0)
    assert set(play(scheduler, [[1.0], [1.0]], 10)) == {0}
    scheduler.update(0, 1.0, 0)
    assert scheduler.next() is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-6, 1), st.floats(0.01, 1), st.floats(0.5, 9), st.integers(1, 9)), min_size=2, max_size=6),
    st.booleans(),
)
@example([(1.0, 1.0, 1.0, 1), (1.0, 1.0, 1.0, 1), (1.0, 0.125, 0.5, 1), (0.5, 1.0, 1.0, 1)], True)  # two trust a third for ever
def test_gradient_starves_no_one(tasks: list[tuple[float, float, float, int]], similar: bool) -> None:
    """While ``g / t`` of the others falls with every share they get, the turn of the smallest comes."""
    infos = [TaskInfo((weight,), 1e9 * start, "all" if similar else None) for start, _, _, weight in tasks]
    curves = [decay(start, start * floor, pace, 400) for start, floor, pace, _ in tasks]
    scheduler = GradientScheduler(infos)
    given = play(scheduler, curves, 300)
    assert len(given) == 300
    for task in range(len(infos)):
        mass = [curve[-1] * other.uses[0] for curve, other in zip(curves, infos, strict=True)]
        fair = 300 * mass[task] / sum(mass)
        assert given.count(task) >= min(2, np.floor(fair / 8))
    assert scheduler.gradient(0) <= 0


def test_equal_tasks_take_turns() -> None:
    given = play(GradientScheduler([TaskInfo()] * 4), [[1.0]] * 4, 40)
    assert [given.count(task) for task in range(4)] == [10] * 4


def test_weight_counts() -> None:
    given = play(GradientScheduler([TaskInfo(), TaskInfo((4.0,))]), [[1.0], [1.0]], 60)
    assert given.count(1) > 3 * given.count(0)


def test_a_slow_task_is_expected_to_reach_what_a_similar_one_reached() -> None:
    tasks = [TaskInfo(flops=1e9, tag="conv"), TaskInfo(flops=1e9, tag="conv"), TaskInfo(flops=1e9, tag="softmax")]
    scheduler = GradientScheduler(tasks)
    for task, latency in enumerate([1e-3, 10e-3, 10e-3]):
        for _ in range(4):
            scheduler.update(task, latency, 16)
    assert scheduler.next() == Share(1)
    assert scheduler.gradient(1) == pytest.approx(0.8 * (2e-3 - 10e-3))
    assert scheduler.gradient(2) == pytest.approx(0.8 * (10e-3 * 3 / 4 - 10e-3))


def test_a_task_that_stays_slow_is_not_similar_after_all() -> None:
    tasks = [TaskInfo(flops=1e9, tag="conv")] * 2
    given = play(GradientScheduler(tasks), [[1e-3], [10e-3]], 100)
    # While it is thought to be similar it gets everything; then the shares follow the latencies.
    assert given[2:8] == [1] * 6
    assert given[20:].count(0) >= 5


def test_window_counts_what_the_last_shares_gave() -> None:
    scheduler = GradientScheduler([TaskInfo((3.0,))])
    for latency in (8.0, 7.0, 5.0, 4.0, 2.0):
        scheduler.update(0, latency, 16)
    assert scheduler.gradient(0) == pytest.approx(3 * (0.2 * (2 - 7) / 3 + 0.8 * (-2 / 5)))


@pytest.mark.parametrize("make", SCHEDULERS)
def test_the_naive_program_is_not_a_share_but_earlier_trials_are(make: Callable[[Sequence[TaskInfo]], TaskScheduler]) -> None:
    scheduler = make([TaskInfo(), TaskInfo()])
    scheduler.update(0, None, 1)
    scheduler.update(1, None, 1)
    assert scheduler.next() == Share(0)  # a naive program that fails does not kill a task
    scheduler = make([TaskInfo(), TaskInfo()])
    scheduler.update(0, 1.0, 64)
    scheduler.update(1, 1.0, 1)
    assert scheduler.next() == Share(1)


def test_a_sibling_gets_a_few_trials_along_that_are_no_share_of_its_own() -> None:
    tasks = [TaskInfo((4.0,), family="conv"), TaskInfo(family="conv"), TaskInfo(family="softmax")]
    scheduler = FamilyScheduler(tasks)
    plain = GradientScheduler(tasks)
    for task in range(3):
        for each in (scheduler, plain):
            each.update(task, 1.0, 16)
    first = scheduler.next()
    assert first == plain.next() == Share(0)
    assert scheduler.next() == Share(1, 16)
    scheduler.update(0, 0.9, 16)
    scheduler.update(1, 0.8, 16)
    # Its latency counts, but it has had one share as before: what another would give is that of the second.
    plain.update(0, 0.9, 16)
    plain.update(1, 0.8, 1)
    assert [scheduler.gradient(task) for task in range(3)] == [plain.gradient(task) for task in range(3)]


def test_a_sibling_with_nothing_left_is_retired() -> None:
    scheduler = FamilyScheduler([TaskInfo(family="conv"), TaskInfo(family="conv")])
    for task in range(2):
        scheduler.update(task, 1.0, 16)
    given = scheduler.next()
    assert given is not None
    sibling = scheduler.next()
    assert sibling == Share(1 - given.task, 16)
    scheduler.update(sibling.task, 1.0, 0)
    scheduler.update(given.task, 1.0, 16)
    for _ in range(5):
        assert scheduler.next() == Share(given.task)
        scheduler.update(given.task, 1.0, 16)


def test_the_bandit_goes_where_a_curve_still_falls_and_where_that_costs_less() -> None:
    falling = tuple(1.0 / share for share in range(1, 9))
    flat = (1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert expected(falling)[0] > 4 * expected(flat)[0] >= 0
    scheduler = CurveBandit([TaskInfo(), TaskInfo()])
    for mine, other in zip(falling, flat, strict=True):
        scheduler.update(0, mine, 16)
        scheduler.update(1, other, 16)
    assert scheduler.next() == Share(0)
    slow, quick = (CurveBandit([TaskInfo(), TaskInfo()]) for _ in range(2))
    for each, seconds in ((slow, 50.0), (quick, 1.0)):
        for share in falling:
            each.update(0, share, 16, seconds)
            each.update(1, share, 16, 1.0)
    assert slow.next() == Share(1)
    assert slow.gradient(0) > quick.gradient(0)


@pytest.mark.parametrize("make", SCHEDULERS)
def test_shares_are_of_tasks_that_are_there_and_the_same_again(make: Callable[[Sequence[TaskInfo]], TaskScheduler]) -> None:
    """Replayed from records, what was decided is decided again."""
    tasks = [TaskInfo((float(1 + n % 3),), 1e6, "tag" if n % 2 else None, "family" if n < 3 else None) for n in range(6)]
    curves = [decay(10.0 ** -(n % 3), 1e-5, 2 + n) for n in range(6)]
    given = play(make(tasks), curves, 60)
    assert given == play(make(tasks), curves, 60)
    assert len(given) == 60
    assert set(given) == set(range(6))
    scheduler, again = make(tasks), make(tasks)
    used = [0] * 6
    for _ in range(20):
        share = scheduler.next()
        assert share is not None
        assert 0 <= share.task < 6
        assert share.trials is None or share.trials > 0
        used[share.task] += 1
        scheduler.update(share.task, curves[share.task][used[share.task]], 16, seconds=1.0)
    # Records come task by task, and unasked.
    for task, count in enumerate(used):
        for share_number in range(1, count + 1):
            again.update(task, curves[task][share_number], 16, seconds=1.0)
    assert again.next() is not None
    assert again.expected_gain() >= 0
