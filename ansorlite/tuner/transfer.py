"""What similar tasks know: their best programs, transplanted, as the first to be measured (Transfer-Tuning: Gibson and Cano,
PACT 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ansorlite.errors import AnsorliteError
from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.transplant import transplant
from ansorlite.spaces.builders import Derived, SpaceBuilder, sketches_of
from ansorlite.task import Task
from ansorlite.task_scheduler import family
from ansorlite.te.serialize import load

#: So many of the nearest tasks are asked,
_TASKS: Final = 3
#: each for so many programs.
_PROGRAMS: Final = 2


def transplanted(
    task: Task, sketches: Sequence[Sketch], records: Database, space: SpaceBuilder | None = None
) -> tuple[Candidate, ...]:
    """The best programs of the most similar tasks in the records, as programs of ``task``; none if there is none of its family.

    Args:
        sketches: of ``task``.
        space: what makes the sketches of the others; by default the derivation rules of the target.
    """
    found: dict[Candidate, None] = {}
    for other in _nearest(task, records):
        theirs = sketches_of(other, space or Derived())
        for candidate in best_of(records, other, _PROGRAMS):
            moved = next((each for sketch in theirs for each in moved_to(sketch, candidate, sketches)), None)
            if moved is not None:
                found[moved] = None
    return tuple(found)


def _nearest(task: Task, records: Database) -> list[Task]:
    """Tasks of the same family with records on the same target, those first whose axes are nearest in length."""
    own, extents = family(task), _extents(task)
    known: list[tuple[float, int, Task]] = []
    for entry in records.tasks():
        try:
            other = Task(load(entry.dag), task.target)
        except AnsorliteError:  # damaged, which the database tells by itself, or of another version
            continue
        if other.key != task.key and family(other) == own and best_of(records, other, _PROGRAMS):
            known.append((float(np.abs(_extents(other) - extents).sum()), len(known), other))
    return [other for _, _, other in sorted(known, key=lambda each: each[:2])][:_TASKS]


def _extents(task: Task) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The logarithms of the lengths of all axes, in order."""
    axes = [axis.extent for tensor in task.dag.computes for axis in (*tensor.axes, *tensor.reduce_axes)]
    return np.log2(np.array(axes, np.float64))


def best_of(records: Database, task: Task, count: int) -> list[Candidate]:
    """The ``count`` fastest programs of a task that ran and were right, but for the loops as written."""

    def latency(measurement: Measurement) -> float:
        return math.inf if measurement.latency is None else measurement.latency

    sound = [record.measurement for record in records.records_of(task) if record.measurement.sound]
    ranked = [each.candidate for each in sorted(sound, key=latency) if each.candidate != NAIVE]
    return list(dict.fromkeys(ranked))[:count]


def moved_to(source: Sketch, candidate: Candidate, targets: Sequence[Sketch]) -> list[Candidate]:
    """A program of ``source``, as the nearest program of each of ``targets`` that takes the same steps and has one."""
    row = source.row_of(candidate)
    if row is None:
        return []
    rows = [(target, transplant(source, row, target)) for target in targets]
    return [
        target.candidate(moved) for target, moved in rows if moved is not None and target.valid(np.array([moved], np.int64)).all()
    ]
