"""What may be tuned: a task, several, or a model, all seen as tasks with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ansorlite.errors import ArgumentError
from ansorlite.graph.hybrid import AnyModel, HybridModel
from ansorlite.graph.model import Model
from ansorlite.task import Task

Workload: TypeAlias = Task | Sequence[Task] | AnyModel


def tasks_of(workload: Workload) -> tuple[tuple[Task, int], ...]:
    """The distinct tasks, each with the number of its uses.

    Raises:
        ArgumentError: no task at all, or tasks for different targets.
    """
    if isinstance(workload, Model | HybridModel):
        pairs = list(workload.tasks)
    else:
        pairs = [(task, 1) for task in ((workload,) if isinstance(workload, Task) else workload)]
    if not pairs:
        raise ArgumentError("there is no task to tune")
    merged: dict[str, tuple[Task, int]] = {}
    for task, weight in pairs:
        first, before = merged.get(task.key, (task, 0))
        if first.target != pairs[0][0].target or task.target != first.target:
            raise ArgumentError("the tasks are for different targets; tune those of each target by themselves")
        merged[task.key] = (first, before + weight)
    return tuple(merged.values())
