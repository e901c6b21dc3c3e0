"""Which task of a model gets the next trials: every scheduler, replayed on models of recorded clouds.

A task is searched once, under trees that learn from its own programs, in rounds as the tuner's; that gives its curve, the best
after each trial. A scheduler that is replayed on curves decides nothing but the order in which the tasks go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ansorlite.cost_model import GBDT
from ansorlite.task_scheduler import SCHEDULERS, Goal, SchedulerMaker, TaskInfo, objective_of
from ansorlite.tuner.loop import MIN_ROUND, round_size
from benchmarks.common.tables import Table as Grid
from benchmarks.search.families import Cloud, Floats

#: Tasks of a model, drawn of the clouds, and trials of each, in the mean.
TASKS: Final = 24
TRIALS: Final = 16
#: Searches of each task, of which each model draws one.
SEARCHES: Final = 4
IN_TURNS: Final = "round_robin"
_GRADIENT: Final = "gradient"


@dataclass(frozen=True, eq=False)
class Curve:
    """One search of a task.

    Attributes:
        best: ``(n + 1,)``: the lowest latency before any trial, which is that of its slowest program, and after each.
        spent: ``(n,)``: seconds that each trial took.
    """

    info: TaskInfo
    best: Floats
    spent: Floats

    @staticmethod
    def of(cloud: Cloud, rng: np.random.Generator) -> Curve:
        """Search ``cloud`` to its end."""
        model, measured = GBDT(), np.zeros(len(cloud.seconds), bool)
        order: list[int] = []
        while not measured.all():
            model.fit(cloud.groups(measured))
            scores = np.where(measured, -np.inf, cloud.scores(model))
            chosen = np.lexsort((rng.random(len(scores)), -scores))[: min(MIN_ROUND, int((~measured).sum()))]
            measured[chosen] = True
            order += chosen.tolist()
        took = np.where(cloud.ran, cloud.seconds, np.inf)[order]
        best = np.minimum.accumulate(np.concatenate([[cloud.seconds[cloud.ran].max()], took]))
        return Curve(cloud.info, best, cloud.spent[order])


def replay(curves: Sequence[Curve], make: SchedulerMaker, uses: Floats, trials: int) -> Floats:
    """``(trials,)``: the latency of the model after each trial; it stays where a scheduler has nothing more to hand out."""
    infos = [replace(curve.info, uses=(use,)) for curve, use in zip(curves, uses.tolist(), strict=True)]
    scheduler = make(infos, objective_of("latency", [Goal()]), 0.0)
    used = [0] * len(curves)
    best = np.array([curve.best[0] for curve in curves])
    for task, latency in enumerate(best.tolist()):
        scheduler.update(task, latency, 1)
    totals: list[float] = []
    while len(totals) < trials and (share := scheduler.next()) is not None:
        task, curve = share.task, curves[share.task]
        left = trials - len(totals)
        usual = MIN_ROUND if used[task] < MIN_ROUND else round_size(left, tasks=len(curves))
        size = min(share.trials or usual, left, len(curve.spent) - used[task])
        begin = used[task]
        for _ in range(size):
            used[task] += 1
            best[task] = curve.best[used[task]]
            totals.append(float(uses @ best))
        scheduler.update(task, float(best[task]), size, float(curve.spent[begin : used[task]].sum()))
    return np.array(totals + totals[-1:] * (trials - len(totals)))


def experiment(clouds: Sequence[Cloud], models: int, seed: int) -> Grid:
    """Over so many models: the area under each scheduler's curve, above what the tasks ever reach, over that of taking turns."""
    streams = np.random.default_rng([seed, 1]).spawn(SEARCHES)
    searches = [[Curve.of(cloud, rng) for rng in streams] for cloud in clouds]
    trials = TASKS * TRIALS
    areas: dict[str, list[float]] = {name: [] for name in SCHEDULERS}
    ends: dict[str, list[float]] = {name: [] for name in SCHEDULERS}
    for number in range(models):
        rng = np.random.default_rng([seed, number])
        chosen = [searches[at][rng.integers(SEARCHES)] for at in rng.permutation(len(clouds))[:TASKS]]
        uses = np.round(2.0 ** rng.uniform(0, 4, len(chosen)))
        floor = float(uses @ np.array([curve.best[-1] for curve in chosen]))
        for name, make in SCHEDULERS.items():
            course = replay(chosen, make, uses, trials)
            # First shares go to every task: what is compared is what comes after.
            areas[name].append(float((course - floor)[MIN_ROUND * len(chosen) :].sum()))
            ends[name].append(float(course[-1] / floor))
    return _shown(areas, ends, models)


def _shown(areas: Mapping[str, Sequence[float]], ends: Mapping[str, Sequence[float]], models: int) -> Grid:
    rows = []
    for name, own in areas.items():
        ratio = np.array(own) / np.array(areas[IN_TURNS])
        against = int(np.count_nonzero(np.array(own) <= np.array(areas[_GRADIENT])))
        end = np.exp(np.log(ends[name]).mean())
        rows.append((name, f"{ratio.mean():.3f}", f"{ratio.max():.3f}", f"{against} of {models}", f"{end:.3f}"))
    bandit = np.array(areas["bandit"]) / np.array(areas[IN_TURNS])
    ahead = np.count_nonzero(np.array(areas["bandit"]) <= np.array(areas[_GRADIENT]))
    met = bandit.mean() <= 0.9 and ahead >= 0.6 * models
    notes = (
        f"{models} models of {TASKS} recorded tasks, {TASKS * TRIALS} trials each. *area*: under the latency of the model, above "
        "what its tasks ever reach, after the first shares, over that of taking turns: mean and worst. *end*: the latency after "
        "all trials, over what the tasks ever reach.",
        f"To be shown of DynaTune: an area of 0.9 of taking turns, no larger than the gradient's on 15 of 25 models: "
        f"{'met' if met else 'missed'}.",
    )
    return Grid("schedulers", ("scheduler", "area", "worst", "no more than the gradient's", "end"), tuple(rows), notes)
