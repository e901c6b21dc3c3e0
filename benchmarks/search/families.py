"""Whether what one task teaches helps its siblings: FamilySeer's claim, replayed on recorded clouds as the tasks of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import CostModel, Group
from ansorlite.cost_model.gbdt import SMALL_TREES
from ansorlite.cost_model.shared import Pool, SharedModel
from ansorlite.task_scheduler import GradientScheduler, TaskInfo, TaskScheduler, describe
from ansorlite.task_scheduler.siblings import FamilyScheduler
from ansorlite.tuner.loop import MIN_ROUND
from benchmarks.common.tables import Table as Grid
from benchmarks.search.entries import task_of
from benchmarks.search.table import Table

Floats: TypeAlias = NDArray[np.float64]

#: Tasks of a model, drawn of the clouds, and trials of each, in the mean: a cloud has some fifty programs.
TASKS: Final = 24
TRIALS: Final = 12
#: Before so many programs a task are measured, a family's forest says nothing: 64 there, more than a cloud has.
WARM_UP: Final = 4


@dataclass(frozen=True, eq=False)
class Cloud:
    """A recorded task.

    Attributes:
        seconds: ``(n,)``; of what was stopped a lower bound, of what failed infinite.
        ran: ``(n,)``
        spent: ``(n,)``: seconds that building and timing took.
        parts: of each sketch the positions of its programs, and their features.
    """

    info: TaskInfo
    seconds: Floats
    ran: NDArray[np.bool_]
    spent: Floats
    parts: tuple[tuple[NDArray[np.int64], Floats], ...]

    @staticmethod
    def of(table: Table) -> Cloud:
        """``table`` was read with its features."""
        assert table.features is not None
        _, first = np.unique(table.key, return_index=True)
        parts = []
        for number, sketch in enumerate(table.meta.sketches):
            own = np.flatnonzero(table.sketch[first] == number)
            if len(own):
                parts.append((own, table.features[first[own], : sketch.statements].astype(np.float64)))
        spent = (table.build + table.run)[first].astype(np.float64)
        return Cloud(describe(task_of(table)), table.seconds[first].astype(np.float64), table.ran[first], spent, tuple(parts))

    def groups(self, measured: NDArray[np.bool_]) -> list[Group]:
        """What was measured, as a model takes it."""
        found = []
        for own, features in self.parts:
            known = measured[own]
            if known.any():
                found.append(Group(features[known], self.seconds[own[known]]))
        return found

    def scores(self, model: CostModel) -> Floats:
        """``(n,)``"""
        scores = np.zeros(len(self.seconds))
        for own, features in self.parts:
            scores[own] = model.predict(features)
        return scores


#: What is compared: its scheduler, and which tasks share a forest, of the family of each.
Sharing: TypeAlias = Callable[[Sequence[object], np.random.Generator], Sequence[object]]
WAYS: Final[Mapping[str, tuple[type[GradientScheduler], Sharing]]] = {
    "a forest a task": (GradientScheduler, lambda families, _: list(range(len(families)))),
    "a forest a family, trials for siblings": (FamilyScheduler, lambda families, _: families),
    "the same, families shuffled": (
        FamilyScheduler,
        lambda families, rng: [families[at] for at in rng.permutation(len(families))],
    ),
}


def replay(clouds: Sequence[Cloud], way: tuple[type[GradientScheduler], Sharing], uses: Floats, trials: int, seed: int) -> Floats:
    """``(trials,)``: the latency of the model after each trial; what nothing has run of takes as long as its slowest program."""
    rng = np.random.default_rng(seed)
    make, sharing = way
    kinds = sharing([cloud.info.family for cloud in clouds], rng)
    pools = {kind: Pool(SMALL_TREES, warm_up=WARM_UP * sum(other == kind for other in kinds)) for kind in kinds}
    models = [SharedModel(pools[kind], str(number)) for number, kind in enumerate(kinds)]
    infos = [replace(cloud.info, uses=(use,), family=kind) for cloud, use, kind in zip(clouds, uses.tolist(), kinds, strict=True)]
    scheduler: TaskScheduler = make(infos)
    best = np.array([cloud.seconds[cloud.ran].max() for cloud in clouds])
    measured = [np.zeros(len(cloud.seconds), bool) for cloud in clouds]
    totals: list[float] = []
    for position, slowest in enumerate(best.tolist()):
        scheduler.update(position, slowest, 1)
    while len(totals) < trials and (share := scheduler.next()) is not None:
        task, cloud = share.task, clouds[share.task]
        size = min(share.trials or MIN_ROUND, trials - len(totals), int((~measured[task]).sum()))
        models[task].fit(cloud.groups(measured[task]))
        scores = np.where(measured[task], -np.inf, cloud.scores(models[task]))
        for at in np.lexsort((rng.random(len(scores)), -scores))[:size].tolist():
            measured[task][at] = True
            if cloud.ran[at]:
                best[task] = min(best[task], cloud.seconds[at])
            totals.append(float(uses @ best))
        scheduler.update(task, float(best[task]), size)
    return np.array(totals + totals[-1:] * (trials - len(totals)))


def experiment(tables: Sequence[Table], models: int, seed: int) -> Grid:
    """Over so many models: after which share of the trials that a forest a task has, the same latency is reached; and how much
    slower the model is at the end."""
    clouds = [Cloud.of(table) for table in tables]
    trials = TASKS * TRIALS
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for number in range(models):
        rng = np.random.default_rng([seed, number])
        chosen = [clouds[at] for at in rng.permutation(len(clouds))[:TASKS]]
        uses = np.round(2.0 ** rng.uniform(0, 4, len(chosen)))
        courses = {name: replay(chosen, way, uses, trials, number) for name, way in WAYS.items()}
        alone = next(iter(courses.values()))[-1]
        for name, course in courses.items():
            reached = np.flatnonzero(course <= alone * (1 + 1e-9))
            found[name].append((float(reached[0] + 1) / trials if len(reached) else np.inf, float(course[-1] / alone)))
    rows = []
    for name, values in found.items():
        shares, slower = np.array(values).T
        reached_at = float(np.median(shares))
        shown = f"{reached_at:.2f}" if np.isfinite(reached_at) else "not reached"
        rows.append((name, shown, f"{np.exp(np.log(slower).mean()):.3f}", f"{slower.max():.3f}"))
    notes = (
        f"{models} models of {TASKS} recorded tasks, {trials} trials each; *trials*: the share of them after which the latency "
        "is what a forest a task reaches in all, the median; *slower*: the latency at the end, in shares of that, mean and "
        "worst.",
        _verdict(found),
    )
    return Grid("families", ("models share", "trials", "slower", "worst"), tuple(rows), notes)


def _verdict(found: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    _, family, shuffled = (np.array(values) for values in found.values())
    met = bool(np.median(family[:, 0]) <= 0.5 and np.exp(np.log(shuffled[:, 1]).mean()) <= 1.02)
    return (
        "To be shown: with families half of the trials are enough, and shuffled families are no slower than by 2 %: "
        f"{'met' if met else 'missed'}."
    )
