"""From a candidate to its program."""

from __future__ import annotations

from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import Function
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.task import Task


def is_program(task: Task, candidate: Candidate) -> bool:
    """Whether the trace makes a program of the task; a record may be of another version, or edited by hand."""
    try:
        lower(task, candidate)
    except ScheduleError:
        return False
    return True


def lower(task: Task, candidate: Candidate) -> Function:
    """The loop IR of one candidate.

    Raises:
        ScheduleError: the trace is none, or is of another computation.
    """
    return sketch_of(task, candidate).lower(())


def sketch_of(task: Task, candidate: Candidate) -> Sketch:
    """The sketch without holes whose only program the candidate is.

    Raises:
        ScheduleError: the trace is none, is of another computation, or leaves something open.
    """
    schedule = read(task.dag, candidate.trace, decided=True)
    return Sketch(schedule.structure, schedule.trace, task.target)
