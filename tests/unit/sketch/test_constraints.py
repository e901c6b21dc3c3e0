"""Limits of a machine are columns: what is beyond them is never drawn, bred or proposed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.codegen.straight_line import LEAST_OF_MATH, least_values
from ansorlite.columns.arithmetic import product, total
from ansorlite.columns.tape import Number
from ansorlite.cost_model import RandomModel
from ansorlite.errors import ProgramSizeError, ScheduleError
from ansorlite.evolution import EvolutionSettings, evolve
from ansorlite.features.programs import ProgramSpace
from ansorlite.loops.nodes import LoopKind
from ansorlite.platforms import PLATFORMS, build, platform_of
from ansorlite.schedule.nest import Program
from ansorlite.schedule.schedule import Schedule
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.random import RandomSearch
from ansorlite.sketch.constraint import Constraint
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.builders import Derived, builder_of, sketches_of
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.expr import Unary
from ansorlite.te.ops import UNARY, Cost, UnaryOp
from tests import workloads
from tests.chains import arithmetic, chain, functions
from tests.targets import WIDE
from tests.unit.tuner.fakes import FakeMeasurer

#: Gives the platform constraints.
Limit = Callable[..., None]

TASK = Task(workloads.matmul_relu(24, 32, 16), WIDE)


def innermost(program: Program, _: Target) -> Number:
    """Elements of the innermost loops of the last nest."""
    return product(loop.trip for loop in program.nests[-1].loops[-2:])


def at_most(count: int) -> Constraint:
    return Constraint("elements of the innermost tile", innermost, lambda _: count)


def tiled(s: Schedule) -> None:
    d = s.stage("D")
    i0, i1 = s.split(d["i"], s.sample_tile(d["i"], parts=2))
    j0, j1 = s.split(d["j"], s.sample_tile(d["j"], parts=2))
    s.reorder(i0, j0, i1, j1)


@pytest.fixture
def limited_to(monkeypatch: pytest.MonkeyPatch) -> Limit:
    def limit(*constraints: Constraint) -> None:
        monkeypatch.setitem(PLATFORMS, WIDE.platform, replace(platform_of(WIDE), constraints=constraints))  # type: ignore[arg-type]

    return limit


def tiles_of(sketch: Sketch, rows: np.ndarray) -> np.ndarray:
    return np.array([innermost(sketch.fold(row), WIDE) for row in rows])


def test_only_valid_rows_are_drawn_bred_and_proposed(limited_to: Limit) -> None:
    limited_to(at_most(6))
    (sketch,) = sketches_of(TASK, builder_of(tiled))
    space, rng = TileSpace(sketch), np.random.default_rng(0)
    rows = space.sample(300, rng)
    assert len(rows) == 300
    assert (tiles_of(sketch, rows) <= 6).all()
    assert len(np.unique(rows, axis=0)) > 10
    near = space.neighbours(rows[0])
    assert len(near)
    assert (tiles_of(sketch, near) <= 6).all()
    # Many a child of valid parents is not.
    assert not space.valid(space.mutate(rows, rng)).all()
    seeds = np.array([[0, 0], space.sizes - 1])
    bred, _ = evolve(space, lambda found: tiles_of(sketch, found).astype(float), seeds, EvolutionSettings(population=64), rng)
    assert len(bred) > 10
    assert (tiles_of(sketch, bred) <= 6).all()
    search = RandomSearch(SearchProblem((ProgramSpace(sketch),)), RandomModel(rng), rng)
    proposed = [sketch.row_of(each) for each in search.propose(1000)]
    every = np.stack(np.meshgrid(*map(np.arange, space.sizes)), -1).reshape(-1, 2)
    assert len(proposed) == len(np.unique(space.canonical(every[space.valid(every)]), axis=0))
    assert (tiles_of(sketch, np.array(proposed)) <= 6).all()
    assert all(sketch.lower(row) is not None for row in every), "every row decodes"


def test_a_space_in_which_nothing_is_valid_says_so(limited_to: Limit) -> None:
    limited_to(at_most(0))
    with pytest.raises(ScheduleError, match=r"tiled makes no program: none of its choices make at most 0 elements of the inner"):
        sketches_of(TASK, builder_of(tiled))
    with pytest.raises(ScheduleError, match=r"no sketch of the task .* has a program for .*: none of its choices make at most 0"):
        sketches_of(TASK, Derived())
    with pytest.raises(ScheduleError, match="none of its choices make at most 0 elements"):
        al.tune(TASK, trials=1, measurer=lambda *_: FakeMeasurer())


def test_a_sketch_without_valid_rows_is_left_out(limited_to: Limit) -> None:
    limited_to(Constraint("copies", lambda program, _: sum(len(nest.packed) for nest in program.nests), lambda _: 0))
    everything, left = derive(TASK), sketches_of(TASK, Derived())
    assert 0 < len(left) < len(everything)
    assert all("cache_read" not in sketch.text for sketch in left)


def test_what_is_valid_for_all_rows_takes_no_column() -> None:
    for sketch in derive(TASK):
        assert sketch._conditions is None, "no default space pays for a limit that it never meets"


def test_threads_of_a_block_are_a_column(limited_to: Limit) -> None:
    """As a GPU's row has it."""

    def threads(program: Program, _: Target) -> Number:
        trips = (loop.trip for nest in program.nests for loop in nest.loops if loop.bound is LoopKind.THREAD)
        return product(trips)

    def blocks(s: Schedule) -> None:
        d = s.stage("D")
        j0, j1 = s.split(d["j"], s.sample_tile(d["j"], parts=2, perfect=True))
        s.reorder(d["i"], j0, j1)
        s.bind(d["i"], "block")
        s.bind(j1, "thread")

    limited_to(Constraint("threads of a block", threads, lambda target: target.vector_registers // 4))
    (sketch,) = sketches_of(TASK, builder_of(blocks))
    rows = TileSpace(sketch).sample(100, np.random.default_rng(0))
    assert {int(threads(sketch.fold(row), WIDE)) for row in rows} == {1, 2, 4, 8}
    limited_to(Constraint("threads of a block", threads, lambda _: 0))
    with pytest.raises(ScheduleError, match="none of its choices make at most 0 threads of a block"):
        sketches_of(TASK, builder_of(blocks))


def test_bytes_that_a_block_shares_are_a_column(limited_to: Limit) -> None:
    def shared_bytes(program: Program, _: Target) -> Number:
        return total(4 * product(stage.lengths) for nest in program.nests for stage in nest.attached if stage.shared)

    def copying(s: Schedule) -> None:
        c = s.stage("C")
        i0, _ = s.split(c["i"], s.sample_tile(c["i"], parts=2, perfect=True))
        s.bind(i0, "block")
        s.cache_read("C", "A", at=i0, layout="plain", scope="shared")

    limited_to(Constraint("bytes that a block shares", shared_bytes, lambda _: 512))
    (sketch,) = sketches_of(TASK, builder_of(copying))
    rows = TileSpace(sketch).sample(100, np.random.default_rng(0))
    assert {int(shared_bytes(sketch.fold(row), WIDE)) for row in rows} == {64 * i for i in (1, 2, 3, 4, 6, 8)}


# CPUs: values of straight-line code ------------------------------------------------------------------------------------


def test_a_function_is_not_unrolled() -> None:
    (sketch,) = sketches_of(chain(functions, 1, WIDE), Derived())
    assert [hole.choices for hole in sketch.holes if hole.name.endswith(".unroll")] == [(0,)]


def test_what_is_sure_to_be_refused_is_not_proposed() -> None:
    (sketch,) = sketches_of(chain(arithmetic, 60, WIDE), Derived())
    space = TileSpace(sketch)
    assert sketch._conditions is not None
    last = space.sizes - 1
    longest = next(row for row in space._drawn(4096, np.random.default_rng(0)) if not space.valid(row[None])[0])
    assert last[-1] == longest[-1]
    with pytest.raises(ProgramSizeError):
        build(sketch.lower(longest), WIDE)
    assert space.valid(space.sample(500, np.random.default_rng(1))).all()


@pytest.mark.parametrize("op", [op for op in UnaryOp if UNARY[op].cost is Cost.MATH])
@pytest.mark.parametrize("lanes", [1, 16])
def test_the_least_values_are_no_more_than_there_are(op: UnaryOp, lanes: int) -> None:
    x = te.placeholder((8, 16), name="x")
    task = Task([x, te.compute((8, 16), lambda i, j: Unary(op, x[i, j], "float32"), name="o")], WIDE)
    s = Schedule(task.dag, WIDE)
    s.vectorize(s.stage("o")["j"], lanes=lanes)
    s.unroll(s.stage("o").loops)
    sketch = Sketch(s.structure, s.trace, WIDE)
    written = len(re.findall(r"^  %\S+ = ", build(sketch.lower(()), WIDE).llvm, re.MULTILINE))
    least = least_values(sketch.fold(()))
    assert 8 * LEAST_OF_MATH <= least <= written
