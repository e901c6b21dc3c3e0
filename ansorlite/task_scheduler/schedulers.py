"""The schedulers by name. A new one is a file beside these and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ansorlite.errors import ArgumentError
from ansorlite.task_scheduler.bandit import CurveBandit
from ansorlite.task_scheduler.gradient import GradientScheduler, GradientSettings
from ansorlite.task_scheduler.objectives import Objective
from ansorlite.task_scheduler.protocol import TaskInfo, TaskScheduler
from ansorlite.task_scheduler.round_robin import RoundRobin
from ansorlite.task_scheduler.siblings import FamilyScheduler

#: What makes a scheduler: of the tasks, of what is to be lowered, and of the share of it that another share of trials for a task
#: must be expected to gain at least; 0 for any.
SchedulerMaker: TypeAlias = Callable[[Sequence[TaskInfo], Objective, float], TaskScheduler]


def _gradient(tasks: Sequence[TaskInfo], objective: Objective, stop_below: float) -> TaskScheduler:
    return GradientScheduler(tasks, objective, GradientSettings(stop_below=stop_below))


def _round_robin(tasks: Sequence[TaskInfo], _: Objective, stop_below: float) -> TaskScheduler:
    if stop_below:
        raise ArgumentError(f"scheduler 'round_robin' forecasts nothing, so stop_below={stop_below} means nothing; leave it out")
    return RoundRobin(tasks)


def _family(tasks: Sequence[TaskInfo], objective: Objective, stop_below: float) -> TaskScheduler:
    return FamilyScheduler(tasks, objective, GradientSettings(stop_below=stop_below))


def _bandit(tasks: Sequence[TaskInfo], objective: Objective, stop_below: float) -> TaskScheduler:
    return CurveBandit(tasks, objective, GradientSettings(stop_below=stop_below))


SCHEDULERS: Final[Mapping[str, SchedulerMaker]] = {
    "gradient": _gradient,
    "round_robin": _round_robin,
    "family": _family,
    "bandit": _bandit,
}
