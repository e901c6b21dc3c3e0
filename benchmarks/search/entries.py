"""Recorded tables as the entries of a data set: what models learn from, and are judged by."""

from __future__ import annotations

import numpy as np

from ansorlite.dataset.entry import Entry, parts_of
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.serialize import load
from benchmarks.search.table import Table


def task_of(table: Table) -> Task:
    """The task of a grid or a cloud."""
    return Task(load(dict(table.meta.dag)), Target.of(table.meta.target))


def sketches_of(table: Table, task: Task) -> list[Sketch]:
    """The sketches of a grid or a cloud, as their traces say; today's rules may make others."""
    schedules = [read(task.dag, sketch.text) for sketch in table.meta.sketches]
    return [Sketch(schedule.structure, schedule.trace, task.target) for schedule in schedules]


def entry_of(table: Table, most: int | None = None, seed: int = 0) -> Entry:
    """A grid or a cloud, each program once; of more than ``most`` so many at random. Its origin is its suite of benchmarks."""
    task = task_of(table)
    _, first = np.unique(table.key, return_index=True)
    if most is not None and len(first) > most:
        chosen = np.random.default_rng(seed).permutation(len(first))[:most]
        # The fastest is kept: scores are shares of it.
        first = np.union1d(first[chosen], first[[np.argmin(table.seconds[first])]])
    candidates = [Candidate(table.traces[at]) for at in first.tolist()]
    parts = parts_of(task, sketches_of(table, task), candidates, table.seconds[first].astype(np.float64))
    return Entry(task, task.target.key, table.meta.name.partition(" ")[0], parts)
