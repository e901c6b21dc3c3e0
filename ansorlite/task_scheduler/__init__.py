"""Which task gets the next trials, and why."""

from ansorlite.task_scheduler.describe import describe, family
from ansorlite.task_scheduler.gradient import GradientScheduler, GradientSettings
from ansorlite.task_scheduler.objectives import OBJECTIVES, Goal, Objective, objective_of
from ansorlite.task_scheduler.protocol import Share, TaskInfo, TaskScheduler
from ansorlite.task_scheduler.round_robin import RoundRobin
from ansorlite.task_scheduler.schedulers import SCHEDULERS, SchedulerMaker

__all__ = [
    "OBJECTIVES",
    "SCHEDULERS",
    "Goal",
    "GradientScheduler",
    "GradientSettings",
    "Objective",
    "RoundRobin",
    "SchedulerMaker",
    "Share",
    "TaskInfo",
    "TaskScheduler",
    "describe",
    "family",
    "objective_of",
]
