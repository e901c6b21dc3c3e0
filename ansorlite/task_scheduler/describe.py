"""From a task to what a scheduler knows of it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final

from ansorlite.task import Task
from ansorlite.task_scheduler.protocol import TaskInfo
from ansorlite.te.expr import Reduce

#: Similar tasks have flops within this factor of one another, as in Ansor.
_GOLDEN: Final = (1 + math.sqrt(5)) / 2


def describe(task: Task, uses: tuple[float, ...] = (1.0,)) -> TaskInfo:
    """What a scheduler knows of ``task``.

    Tasks are similar if their reductions fold with the same operations over as many axes, and their flops are near. They are of
    one family if they have stages of the same kinds, in order, as FamilySeer's (Zhang et al., arXiv 2201.00194).
    """
    reductions = tuple(
        (tensor.body.op, tensor.ndim, len(tensor.body.axes)) for tensor in task.dag.computes if isinstance(tensor.body, Reduce)
    )
    size = int(math.log(task.dag.flops + 1) / math.log(_GOLDEN))
    return TaskInfo(uses, float(task.dag.flops), (reductions, size), family(task))


def family(task: Task) -> Hashable:
    """What the stages of a task are, whatever their names and extents: the operations that reduce, axes, and element types."""
    return tuple(
        (tensor.body.op if isinstance(tensor.body, Reduce) else "", tensor.ndim, len(tensor.reduce_axes), tensor.dtype)
        for tensor in task.dag.computes
    )
