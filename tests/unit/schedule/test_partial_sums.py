"""Sums in so many parts, and stages that get a dimension of one element."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ScheduleError
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.verifier import verify
from ansorlite.schedule.schedule import Schedule
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests.contracts.test_right_numbers import poisoned
from tests.strategies import arrays_for, assert_close
from tests.targets import WIDE


def sums(m: int, k: int, most: bool = False) -> Task:
    x = te.placeholder((m, k), name="X")
    r = te.reduce_axis(k, name="r")
    add = te.max if most else te.sum
    y = te.compute((m,), lambda i: add(x[i, r] - 2.0, axis=r), name="Y")
    return Task([x, te.compute((m,), lambda i: y[i] * 2.0, name="Z")], WIDE)


def mean(k: int) -> Task:
    x = te.placeholder((k,), name="X")
    r = te.reduce_axis(k, name="r")
    y = te.compute((), lambda: te.sum(x[r], axis=r), name="Y")
    return Task([x, te.compute((k,), lambda i: x[i] - y[()] / float(k), name="Z")], WIDE)


def check(task: Task, s: Schedule) -> None:
    """The program computes what is written, and its trace makes it again."""
    rng = np.random.default_rng(1)
    inputs, outputs = arrays_for(task.dag, rng), poisoned(task.dag)
    function = lower(task, Candidate(str(s.trace)))
    verify(function)
    interpret(function, [*inputs, *outputs])
    assert_close(task.dag, outputs, evaluate(task.dag, inputs))
    assert str(read(task.dag, str(s.trace)).trace) == str(s.trace)


@pytest.mark.parametrize(("k", "parts"), [(12, 3), (13, 4), (5, 5), (7, 2)])
@pytest.mark.parametrize("most", [False, True])
def test_so_many_parts(k: int, parts: int, most: bool) -> None:
    task = sums(3, k, most)
    s = Schedule(task.dag)
    partial = s.rfactor(s.stage("Y")["r"], parts=parts)
    assert partial.tensor.shape == (parts, 3)
    assert partial.tensor.reduce_axes[0].extent == -(-k // parts)
    s.parallel(partial.loops[:2])
    check(task, s)


@pytest.mark.parametrize("parts", [0, 1, 9])
def test_parts_are_some_and_none_is_empty(parts: int) -> None:
    s = Schedule(sums(3, 8).dag)
    with pytest.raises(ScheduleError, match=f"cannot be cut into {parts} parts; name 2 to 8"):
        s.rfactor(s.stage("Y")["r"], parts=parts)


def test_a_stage_without_dimensions_gets_one() -> None:
    task = mean(9)
    s = Schedule(task.dag)
    s.add_unit_axis("Y")
    assert s.stage("Y").tensor.shape == (1,)
    s.parallel(s.stage("Y").loops[:1])
    check(task, s)


def test_a_stage_with_dimensions_gets_none() -> None:
    s = Schedule(sums(3, 8).dag)
    with pytest.raises(ScheduleError, match="Y has 1 dimensions"):
        s.add_unit_axis("Y")


def test_limits_of_a_tile_are_one_for_each_loop() -> None:
    s = Schedule(sums(48, 8).dag)
    i = s.stage("Y")["i"]
    with pytest.raises(ScheduleError, match="3 loops, but most has 2"):
        s.sample_tile(i, 3, most=(None, 4))
    s.split(i, s.sample_tile(i, 3, most=(None, 4, 2), name="i"))
    (hole,) = s.trace.holes
    assert hole.table is not None
    assert hole.table.trips[:, 1:].max(axis=0).tolist() == [4, 2]
    assert "most=(None, 4, 2)" in str(s.trace)
    assert str(read(sums(48, 8).dag, str(s.trace)).trace) == str(s.trace)
