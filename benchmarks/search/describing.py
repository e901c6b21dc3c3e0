"""The features of recorded programs, made anew by today's code: their traces say all that it takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorlite.features import NAMES, NUM_FEATURES, extract
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.serialize import load
from benchmarks.search.table import Table


def described(table: Table) -> Table:
    """``table``, of one of our tasks, with the features that its programs have today."""
    task = Task(load(dict(table.meta.dag)), Target.of(table.meta.target))
    row = np.zeros((1, 0), np.int64)
    # Rows of one key are one program: a grid has seven of each.
    _, first, program = np.unique(table.key, return_index=True, return_inverse=True)
    found = [extract(sketch_of(task, Candidate(table.traces[at])), row)[0] for at in first.tolist()]
    features = np.zeros((len(table), max(map(len, found)), NUM_FEATURES), np.float16)
    for number, each in enumerate(program.tolist()):
        features[number, : len(found[each])] = found[each]
    statements = [max(len(found[at]) for at in program[table.sketch == n].tolist()) for n in range(len(table.meta.sketches))]
    sketches = tuple(replace(s, statements=count) for s, count in zip(table.meta.sketches, statements, strict=True))
    return replace(table, meta=replace(table.meta, features=NAMES, sketches=sketches), features=features)
