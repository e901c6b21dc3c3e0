"""Contract 5, replay: trace -> text -> trace -> program gives the same key and the same loop IR."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.loops.printer import text
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.program import lower
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.target import Target
from ansorlite.task import Task
from tests.contracts.cases import NAMED, named_dag, reproducer, sketches_of, times
from tests.targets import NARROW, WIDE

#: So many programs of each computation and target; some 10,000 in all.
_PROGRAMS = 10_000 // (2 * len(NAMED)) + 1


@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", NAMED)
def test_named_computations(name: str, target: Target) -> None:
    rng, dag = np.random.default_rng(5), named_dag(name)
    task, sketches = Task(dag, target), sketches_of(dag, target, np.random.default_rng(5))
    for sketch in sketches:
        space = TileSpace(sketch)
        for row in space.sample(times(-(-_PROGRAMS // len(sketches))), rng):
            candidate = sketch.candidate(row)
            with reproducer(dag, sketch, row):
                again = read(dag, candidate.trace)
                assert str(again.trace) == candidate.trace
                assert text(lower(task, candidate)) == text(sketch.lower(row))
                found = sketch.row_of(candidate)
                assert found is not None
                assert (space.canonical(np.array([found])) == space.canonical(row[None])).all()
