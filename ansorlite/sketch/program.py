"""From a candidate to its program."""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.errors import TuningError
from ansorlite.loops.nodes import Function
from ansorlite.schedule.naive import lower_naive
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.task import Task


def has(candidate: Candidate, sketches: Sequence[Sketch]) -> bool:
    """Whether there is such a program; a record of another version may name a sketch that is gone, or a row that does not fit."""
    return candidate == NAIVE or any(each.signature == candidate.sketch and each.fits(candidate.row) for each in sketches)


def lower(task: Task, candidate: Candidate, sketches: Sequence[Sketch]) -> Function:
    """The loop IR of one candidate.

    Raises:
        TuningError: the task has no such sketch (a record of another version, say), or the row does not fit it.
    """
    if candidate.sketch == NAIVE.sketch:
        return lower_naive(task.dag)
    for sketch in sketches:
        if sketch.signature == candidate.sketch:
            return sketch.lower(candidate.row)
    known = ", ".join(s.signature for s in sketches)
    raise TuningError(f"this task has no sketch {candidate.sketch}, only {known}; the record is from another version, tune again")
