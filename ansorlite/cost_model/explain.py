"""Why the analytical cost model takes a program to be as fast as it does: for each statement, what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ansorlite.cost_model.draft import Cycles, Draft
from ansorlite.cost_model.draft_gpu import GpuDraft
from ansorlite.features import extract
from ansorlite.features.gpu import gpu_statements
from ansorlite.features.names import COLUMN
from ansorlite.features.population import population_facts
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.task import Task

#: What of :class:`~ansorlite.cost_model.draft.Cycles` takes time that threads share, and what they have shared already.
_OWN: Final = tuple(name for name in Cycles._fields if name not in ("l3", "memory", "coherence", "threads"))
_SHARED: Final = ("l3", "memory", "coherence")


@dataclass(frozen=True)
class Statement:
    """What the model makes of one statement.

    Attributes:
        name: of the stage.
        microseconds: by cause, of each of the threads that share the work, or of a GPU; what overlaps is counted in each.
        total: microseconds until all threads are done, with entering and leaving its parallel loop, or with its launch.
        bound: the cause that takes longest.
    """

    name: str
    microseconds: Mapping[str, float]
    total: float
    bound: str


@dataclass(frozen=True)
class Explanation:
    """The estimate of a program.

    Attributes:
        statements: of all that a call runs.
        regions: microseconds of entering and leaving parallel loops, or of launches, in all.
        total: microseconds of a call.
    """

    statements: tuple[Statement, ...]
    regions: float
    total: float


def explain(task: Task, candidate: Candidate) -> Explanation:
    """The estimate of ``candidate``, taken apart.

    Raises:
        ScheduleError: its trace makes no program of the task.
    """
    sketch = sketch_of(task, candidate)
    if task.target.gpu is not None:
        return _on_gpu(sketch)
    draft, features = Draft(sketch.target), extract(sketch, np.zeros((1, 0), np.int64))
    names = [facts.name for facts in population_facts(sketch.fold(()))]
    machine = sketch.target.machine
    cycles, unit = draft.cycles(features), 1e6 / machine.clock
    totals, parallel, regions = cycles.total(machine), draft.parallel(features)[0], features[0, :, COLUMN["parallel_region"]]
    statements: list[Statement] = []
    awake = False
    for number, name in enumerate(names):
        threads = float(cycles.threads[number, 0])
        own = {cause: float(getattr(cycles, cause)[number, 0]) / threads * unit for cause in _OWN}
        own |= {cause: float(getattr(cycles, cause)[number, 0]) * unit for cause in _SHARED}
        entered = machine.region * float(regions[number]) + (machine.wake if parallel[number] and not awake else 0.0)
        own["region"] = entered * unit
        awake = awake or bool(parallel[number])
        total = float(totals[number, 0]) * unit + own["region"]
        statements.append(Statement(name, own, total, max(own, key=lambda cause: own[cause])))
    return Explanation(tuple(statements), float(draft.regions(features)[0]) * unit, float(draft.seconds(features)[0]) * 1e6)


def _on_gpu(sketch: Sketch) -> Explanation:
    draft, features = GpuDraft(sketch.target), extract(sketch, np.zeros((1, 0), np.int64))
    causes = draft.causes(features)
    totals, statements = 1e6 * causes.total[0], []
    for number, name in enumerate(gpu_statements(sketch.fold(()))):
        own = {cause: 1e6 * float(getattr(causes, cause)[0, number]) for cause in causes._fields}
        statements.append(Statement(name, own, float(totals[number]), max(own, key=lambda cause: own[cause])))
    return Explanation(tuple(statements), 1e6 * float(causes.launch.sum()), float(totals.sum()))
