"""Tokens of traces and trees of loops, as models other than ours read them."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.features import loop_tree as trees
from ansorlite.features import tokens as sequences
from ansorlite.features.loop_tree import NODE, Kind, LoopTree
from ansorlite.features.programs import Programs, ProgramSpace
from ansorlite.features.tokens import EXTENTS, NUMBERS, TOKEN
from ansorlite.schedule.primitives import PRIMITIVES
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from tests import workloads
from tests.contracts.cases import NAMED, named_dag
from tests.targets import WIDE

TASK = Task(workloads.matmul_relu(24, 32, 16), WIDE)


def by_hand() -> Sketch:
    s = Schedule(TASK.dag, WIDE)
    c = s.stage("C")
    i0, i1 = s.split(c["i"], s.sample_tile(c["i"], parts=2, perfect=True, name="tile"))
    s.reorder(i0, c["j"], c["k"], i1)
    s.bind(i0, "block")
    s.unroll(i1, max_steps=s.sample((0, 64), name="steps"))
    s.reverse_compute_at("D", s.sample((i0, c["j"]), name="place"))
    return Sketch(s.structure, s.trace, WIDE)


def count(value: float) -> int:
    return round(2.0**value - 1.0)


def test_a_token_for_each_primitive() -> None:
    sketch = by_hand()
    table = sketch.holes[0].table
    assert table is not None
    rows = np.array([[tile, steps, place] for tile in range(table.rows) for steps in (0, 1) for place in (0, 1)])
    found = ProgramSpace(sketch).programs(rows).tokens
    assert found.shape == (len(rows), len(sketch.trace.steps), len(TOKEN))
    assert (found[:, :, : len(PRIMITIVES)].sum(axis=2) == 1).all()
    assert [TOKEN[kind] for kind in found[0, :, : len(PRIMITIVES)].argmax(axis=1)] == [
        "split", "reorder", "bind", "unroll", "reverse_compute_at",
    ]  # fmt: skip
    first = len(PRIMITIVES)
    for row, of in zip(rows, found, strict=True):
        assert [count(x) for x in of[0, first : first + 3]] == [*table.trips[row[0]], 0]
        assert count(of[3, first]) == (0, 64)[row[1]]
        assert count(of[4, first]) == row[2]
        assert [count(x) for x in of[1, first + NUMBERS :]] == [24, 32, 16, 24], "the axes of reordered loops"
    assert len(TOKEN) == first + NUMBERS + EXTENTS


def test_the_loops_are_a_tree_of_one_shape() -> None:
    sketch = by_hand()
    table = sketch.holes[0].table
    assert table is not None
    rows = np.array([[tile, 1, place] for tile in range(table.rows) for place in (0, 1)])
    tree = ProgramSpace(sketch).programs(rows).loops
    assert tree.kinds == (*[Kind.LOOP] * 4, Kind.ANCHOR, Kind.EPILOGUE)
    assert tree.names == ("i0", "j", "k", "i1", "C", "D")
    assert tree.parents.tolist() == [-1, 0, 1, 2, 3, 0]
    column = {name: place for place, name in enumerate(NODE)}
    for row, of in zip(rows, tree.values, strict=True):
        outer, inner = table.trips[row[0]]
        assert [count(x) for x in of[:4, column["trip"]]] == [outer, 32, 16, inner]
        assert of[:4, column["reduce"]].tolist() == [0, 0, 1, 0]
        assert of[:4, column["binding"]].tolist() == [1, 0, 0, 0]
        assert of[3, column["unrolled"]] == (1 < inner <= 64)
        nest = sketch.fold(row).nests[0]
        assert of[5, column["place"]] == nest.band_start(int(nest.epilogue_at))
        if outer > 1:
            assert count(of[5, column["elements"]]) == (inner if row[2] else 32 * inner)


@pytest.mark.parametrize("name", list(NAMED)[::4])
def test_rows_by_themselves_have_what_they_have_together(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in derive(Task(named_dag(name), WIDE))[:2]:
        space = ProgramSpace(sketch)
        rows = space.space.sample(20, rng)
        programs = space.programs(rows)
        for position in range(0, 20, 7):
            alone = space.programs(rows[position : position + 1])
            np.testing.assert_array_equal(alone.tokens[0], programs.tokens[position])
            np.testing.assert_array_equal(alone.loops.values[0], programs.loops.values[position])
        assert np.isfinite(programs.tokens).all()
        assert np.isfinite(programs.loops.values).all()
        assert (programs.loops.parents < np.arange(len(programs.loops.kinds))).all()
        with pytest.raises(ValueError, match="read-only"):
            programs.tokens[0] = 0
        with pytest.raises(ValueError, match="read-only"):
            programs.loops.values[0] = 0


def test_no_rows_have_shapes_too() -> None:
    none = ProgramSpace(by_hand()).programs(np.zeros((0, 3), np.int64))
    assert none.tokens.shape == (0, 5, len(TOKEN))
    assert none.loops.values.shape == (0, 6, len(NODE))


def test_views_that_nobody_asks_for_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> LoopTree:
        raise AssertionError("nobody asked")

    monkeypatch.setattr("ansorlite.features.programs.tokens", asked)
    monkeypatch.setattr("ansorlite.features.programs.loop_tree", asked)
    sketch = by_hand()
    programs = Programs(sketch, np.zeros((3, 3), np.int64))
    assert programs.features.shape[0] == programs.knobs.shape[0] == 3
    assert sketch not in trees._SHAPES
    assert sketch not in sequences._PROGRAMS
