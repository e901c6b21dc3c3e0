"""The rest of an uneven split, run under conditions: of iterations, and of lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from ansorlite import te
from ansorlite.features import extract
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.platforms import finished
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.sketch import Sketch
from ansorlite.target import NAMED as TARGETS
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.contracts.test_right_numbers import compiled
from tests.strategies import arrays_for, assert_close
from tests.targets import WIDE
from tests.unit.schedule.test_language import MATMUL_RELU, loops, refused


def element_wise(s: Schedule) -> None:
    d = s.stage("D")
    i0, i1 = s.split(d["i"], [None, 5], tail="guard")
    j0, j1 = s.split(d["j"], [None, 8], tail="mask")
    s.reorder(i0, j0, i1, j1)
    s.unroll((i1, j1), max_steps=8)
    s.vectorize(j1, lanes=8)
    s.parallel((i0, j0))


def sums_in_memory(s: Schedule) -> None:
    c = s.stage("C")
    i0, i1 = s.split(c["i"], [None, 5], tail="guard")
    j0, j1 = s.split(c["j"], [None, 8], tail="mask")
    k0, k1 = s.split(c["k"], [None, 4], tail="guard")
    s.reorder(i0, j0, k0, k1, i1, j1)
    s.vectorize(j1, lanes=8)


def tile_of_registers(s: Schedule) -> None:
    c = s.stage("C")
    i0, i1 = s.split(c["i"], [None, 5], tail="guard")
    j0, j1 = s.split(c["j"], [None, 8], tail="mask")
    k0, k1 = s.split(c["k"], [None, 4], tail="guard")
    s.reorder(i0, j0, k0, k1, i1, j1)
    s.vectorize(j1, lanes=8)
    s.unroll((k1, i1, j1))
    s.reverse_compute_at("D", j0)
    s.cache_read(c, "B", at=j0)
    s.cache_read(c, "A", at=i0)


def sums_in_lanes(s: Schedule) -> None:
    c = s.stage("C")
    _, k1 = s.split(c["k"], [None, 4], tail="mask")
    s.split(c["j"], [None, 8], tail="guard")
    s.vectorize(k1, lanes=4)


def inside_of_a_fused_loop(s: Schedule) -> None:
    d = s.stage("D")
    i0, i1 = s.split(d["i"], [None, 5], tail="guard")
    _, j1 = s.split(d["j"], [None, 6], tail="guard")
    i1_j0 = s.fuse(i1, s.stage("D")["j0"])
    s.compute_at("C", i0)
    s.bind(i1_j0, "thread")
    s.unroll(j1)


PROGRAMS: Final[Mapping[str, Callable[[Schedule], None]]] = {
    make.__name__: make for make in (element_wise, sums_in_memory, tile_of_registers, sums_in_lanes, inside_of_a_fused_loop)
}
MACHINES: Final = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_beyond_the_end_is_not_done(name: str) -> None:
    assert "if " in loops(PROGRAMS[name])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name: str, machine: str) -> None:
    target = replace(TARGETS[machine], threads=2)
    s = Schedule(MATMUL_RELU.dag, target)
    PROGRAMS[name](s)
    inputs = arrays_for(MATMUL_RELU.dag, np.random.default_rng(0))
    found = compiled(MATMUL_RELU.dag, Sketch(s.structure, s.trace, target).lower(()), inputs, target)
    if found is not None:
        assert_close(MATMUL_RELU.dag, found, evaluate(MATMUL_RELU.dag, inputs))


@pytest.mark.parametrize("name", PROGRAMS)
def test_features_are_those_of_the_loops(name: str) -> None:
    s = Schedule(MATMUL_RELU.dag, WIDE)
    PROGRAMS[name](s)
    sketch = Sketch(s.structure, s.trace, WIDE)
    names = [facts.name for facts in population_facts(sketch.fold(()))]
    (fast,) = extract(sketch, np.zeros((1, 0), np.int64))
    (slow,) = reference(finished(sketch.lower(()), WIDE), names, WIDE)
    np.testing.assert_allclose(fast, slow, rtol=0.0, atol=1e-9)


def test_a_condition_of_whole_vectors_has_no_lane_in_it() -> None:
    def steps(s: Schedule) -> None:
        _, j1 = s.split(s.stage("D")["j"], [None, 8], tail="guard")
        _, j11 = s.split(j1, [2, 4])
        s.vectorize(j11, lanes=4)

    assert "if j0_1 * 8 + j1 * 4 < 20:" in loops(steps)


def test_lanes_beyond_the_end_are_masked_or_refused() -> None:
    def steps(s: Schedule) -> None:
        _, j1 = s.split(s.stage("D")["j"], [None, 8], tail="guard")
        s.vectorize(j1, lanes=8)

    assert "split that with tail='mask'" in refused(steps)


def test_what_ends_early_is_not_prefetched() -> None:
    def steps(s: Schedule) -> None:
        k0, _ = s.split(s.stage("C")["k"], [None, 4], tail="guard")
        s.prefetch("C", "B", at=k0)

    assert "iterations of loop k0 may be beyond the end; split it with tail='cut'" in refused(steps)


@pytest.mark.parametrize("tail", ["cut", "guard", "mask"])
def test_steps_of_loops_that_shift_do_not_end_early(tail: str) -> None:
    a = te.placeholder((9,), name="A")
    task = Task([a, te.compute((9,), lambda i: a[i] * 2, name="B")], WIDE)

    def steps(s: Schedule) -> None:
        i0, _ = s.split(s.stage("B")["i"], [None, 4], tail="shift")
        s.split(i0, [2, 2], tail=tail)

    assert "the loops inside of it are shifted: give tail= to the first split of i, too" in refused(steps, task)


def test_features_see_where_the_last_iteration_is_shifted_to() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((5,), lambda i: a[i // 2], name="B")
    task = Task([a, te.compute((5,), lambda i: b[i] * 2, name="C"), b], WIDE)
    s = Schedule(task.dag, WIDE)
    s.split(s.stage("B")["i"], [None, 4], tail="shift")  # from 0, and from 1: i // 2 is 0 at both
    sketch = Sketch(s.structure, s.trace, WIDE)
    names = [facts.name for facts in population_facts(sketch.fold(()))]
    (fast,) = extract(sketch, np.zeros((1, 0), np.int64))
    (slow,) = reference(finished(sketch.lower(()), WIDE), names, WIDE)
    np.testing.assert_allclose(fast, slow, rtol=0.0, atol=1e-9)


def test_a_window_is_read_within_its_array() -> None:
    def steps(s: Schedule) -> None:
        y0, y1 = s.split(s.stage("depthwise")["y"], [None, 4], tail="mask")
        s.split(s.stage("depthwise")["z"], [None, 2], tail="guard")
        s.compute_at("padded", y0)
        s.reorder(s.stage("depthwise")["rx"], y1)

    loops(steps, Task(workloads.depthwise(1, 3, 9, 9), WIDE))
