"""The verb :func:`replay`."""

from __future__ import annotations

from ansorlite.errors import ArgumentError
from ansorlite.programs.kernels import compile_candidate
from ansorlite.runtime.kernel import Kernel
from ansorlite.schedule.trace import Trace
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


def replay(task: Task, trace: str | Trace) -> Kernel:
    """Make the program of a trace: it needs the computation and the trace, nothing else.

    Args:
        trace: with all decisions made, as ``kernel.trace`` or the trace of an :class:`ansorlite.Schedule`; nothing of a text is
            executed, it is read.

    Raises:
        ArgumentError: ``task`` is none, or ``trace`` is neither a trace nor a text.
        ScheduleError: the trace is of another computation, leaves something open, or is no trace.
    """
    if not isinstance(task, Task):
        raise ArgumentError(f"a {type(task).__name__} is no task; a trace is of one: al.Task([...])")
    if not isinstance(trace, str | Trace):
        raise ArgumentError(f"a {type(trace).__name__} is no trace; give kernel.trace, or the text of one")
    return compile_candidate(task, Candidate(str(trace)))
