"""Which task gets the next trials, and why."""

from ansorlite.task_scheduler.describe import describe
from ansorlite.task_scheduler.gradient import GradientScheduler, GradientSettings
from ansorlite.task_scheduler.objectives import OBJECTIVES, Goal, Objective, objective_of
from ansorlite.task_scheduler.protocol import TaskInfo, TaskScheduler
from ansorlite.task_scheduler.round_robin import RoundRobin

__all__ = [
    "OBJECTIVES",
    "Goal",
    "GradientScheduler",
    "GradientSettings",
    "Objective",
    "RoundRobin",
    "TaskInfo",
    "TaskScheduler",
    "describe",
    "objective_of",
]
