"""What may be tuned: a task, a model, a module, or several of them, all seen as tasks that models use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from ansorlite.errors import ArgumentError
from ansorlite.graph.hybrid import AnyModel
from ansorlite.graph.open_model import OpenModel
from ansorlite.module.module import Module
from ansorlite.task import Task

Part: TypeAlias = Task | AnyModel | OpenModel | Module
Workload: TypeAlias = Part | Sequence[Part]


def parts_of(workload: Workload) -> tuple[Part, ...]:
    """The models; a task by itself is one that runs nothing else.

    Raises:
        ArgumentError: there is none, or something else is among them.
    """
    parts = tuple(workload) if isinstance(workload, Iterable) and not isinstance(workload, str) else (workload,)
    if not parts:
        raise ArgumentError("there is no task to tune")
    for part in parts:
        if not isinstance(part, Part):
            raise ArgumentError(f"{part!r} is neither a task nor a model; make one with al.Task([...]) or al.from_onnx(...)")
    return parts


def tasks_of(parts: Sequence[Part]) -> tuple[tuple[Task, tuple[int, ...]], ...]:
    """The distinct tasks, each with the number of its uses in each part.

    Raises:
        ArgumentError: no task at all, or tasks for different targets.
    """
    uses: dict[str, tuple[Task, np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
    for position, part in enumerate(parts):
        for task, count in ((part, 1),) if isinstance(part, Task) else part.tasks:
            first, counts = uses.setdefault(task.key, (task, np.zeros(len(parts), np.int64)))
            if task.target != first.target or task.target != next(iter(uses.values()))[0].target:
                raise ArgumentError("the tasks are for different targets; tune those of each target by themselves")
            counts[position] += count
    if not uses:
        raise ArgumentError("there is no task to tune")
    return tuple((task, tuple(map(int, counts))) for task, counts in uses.values())
