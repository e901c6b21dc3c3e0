"""Which task gets the next trials, and why."""

from ansorlite.task_scheduler.describe import describe
from ansorlite.task_scheduler.gradient import GradientScheduler, GradientSettings
from ansorlite.task_scheduler.protocol import TaskInfo, TaskScheduler
from ansorlite.task_scheduler.round_robin import RoundRobin

__all__ = ["GradientScheduler", "GradientSettings", "RoundRobin", "TaskInfo", "TaskScheduler", "describe"]
