"""From a trace to the program that it makes of a computation: nothing else is needed, neither rules nor tables."""

from __future__ import annotations

from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import Function
from ansorlite.schedule.fold import fold
from ansorlite.schedule.lower import lower_program
from ansorlite.schedule.schedule import Schedule
from ansorlite.schedule.trace import Trace, chosen
from ansorlite.te.dag import ComputeDAG


def replay(dag: ComputeDAG, trace: Trace, name: str = "kernel") -> Function:
    """The loop IR of a trace in which everything is decided.

    Raises:
        ScheduleError: the trace is of another computation, or something in it is not decided yet.
    """
    if trace.holes:
        raise ScheduleError(f"the trace leaves {', '.join(hole.name for hole in trace.holes)} open; decide them first")
    return lower_program(fold(replayed(dag, trace).structure, chosen((), ())), name)


def replayed(dag: ComputeDAG, trace: Trace) -> Schedule:
    """The schedule that the primitives of a trace make of a computation.

    Raises:
        ScheduleError: the trace is of another computation.
    """
    schedule = Schedule(dag)
    for number, step in enumerate(trace.steps, 1):
        try:
            schedule.apply(step)
        except ScheduleError as error:
            raise ScheduleError(
                f"step {number} of the trace, {step.method}, does not apply to this computation: {error}"
            ) from error
    return schedule
