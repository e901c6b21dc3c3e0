"""What tuning several models is to lower: one file an objective, and this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ansorlite.errors import ArgumentError
from ansorlite.task_scheduler.objectives.bounds import LatencyBounds
from ansorlite.task_scheduler.objectives.geomean import GeomeanLatency
from ansorlite.task_scheduler.objectives.goal import Goal, Objective
from ansorlite.task_scheduler.objectives.latency import TotalLatency

#: Name -> the objective for models with these goals.
OBJECTIVES: Final[Mapping[str, Callable[[Sequence[Goal]], Objective]]] = {
    "latency": TotalLatency,
    "bounds": LatencyBounds,
    "geomean": GeomeanLatency,
}

__all__ = ["OBJECTIVES", "GeomeanLatency", "Goal", "LatencyBounds", "Objective", "TotalLatency", "objective_of"]


def objective_of(name: str, goals: Sequence[Goal]) -> Objective:
    """The objective called ``name``.

    Args:
        goals: one for each model.

    Raises:
        ArgumentError: there is no such objective, or the goals are not what it needs, or more than it heeds.
    """
    if name not in OBJECTIVES:
        raise ArgumentError(f"unknown objective {name!r}; the objectives are: {', '.join(OBJECTIVES)}")
    if name != "bounds" and any(goal.bound is not None for goal in goals):
        raise ArgumentError(f"a bound means nothing to objective {name!r}; choose objective 'bounds'")
    if name != "geomean" and any(goal.reference is not None for goal in goals):
        raise ArgumentError(f"a reference means nothing to objective {name!r}; choose objective 'geomean'")
    return OBJECTIVES[name](goals)
