"""Traces as text: what they print, and what is refused when they are read."""

from __future__ import annotations

import numpy as np
import pytest

import ansorlite as al
from ansorlite.errors import ArgumentError, ScheduleError
from ansorlite.schedule.trace_reader import LONGEST, read
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from tests import workloads
from tests.targets import WIDE

TASK = Task(workloads.matmul_relu(12, 20, 9), WIDE)
SKETCH = derive(TASK)[0]

SMALL = """def schedule(s):
    C = s.stage("C")
    i0, i1 = s.split(C["i"], (3, 4))
    s.reorder(i0, C["k"], i1, C["j"])
    s.vectorize(C["j"], lanes=8)
    s.parallel((i0,), depth=1)"""


def test_a_trace_prints_as_the_function_that_makes_it_again() -> None:
    assert str(read(TASK.dag, SMALL).trace) == SMALL
    s = al.Schedule(TASK.dag)
    exec(SMALL + "\n", namespace := {})
    namespace["schedule"](s)
    assert str(s.trace) == SMALL


def test_a_sketch_prints_its_holes_and_reads_them_back() -> None:
    again = read(TASK.dag, SKETCH.text)
    assert str(again.trace) == SKETCH.text
    assert [(hole.name, hole.size) for hole in again.trace.holes] == [(hole.name, hole.size) for hole in SKETCH.holes]


def test_a_sample_that_is_used_twice_is_named() -> None:
    s = al.Schedule(TASK.dag)
    c, tile = s.stage("C"), s.sample((2, 4), name="tile")
    s.split(c["i"], [None, tile])
    s.split(c["j"], [None, tile * 2 + 1])
    printed = str(s.trace)
    assert 'tile = s.sample((2, 4), name="tile")' in printed
    assert "((tile * 2) + 1)" in printed
    assert str(read(TASK.dag, printed).trace) == printed


def test_the_row_of_a_trace_is_found_again() -> None:
    for row in TileSpace(SKETCH).sample(20, np.random.default_rng(0)):
        candidate = SKETCH.candidate(row)
        found = SKETCH.row_of(candidate)
        assert found is not None
        assert SKETCH.candidate(found) == candidate
    assert SKETCH.row_of(derive(TASK)[-1].candidate(derive(TASK)[-1].holes and [0] * len(derive(TASK)[-1].holes))) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import os", "neither a call of a primitive nor an assignment"),
        ('__import__("os").system("true")', "is no primitive"),
        ("s.__class__()", "is no primitive"),
        ("s.apply(1)", "is no primitive"),
        ("x = s.structure", "is nothing that a trace has in it"),
        ("x = [a for a in (1, 2)]", "is nothing that a trace has in it"),
        ("x = 2 ** 100000", "is nothing that a trace has in it"),
        ("x = lambda: 0", "is nothing that a trace has in it"),
        ("x = y", "y is not there yet"),
        ("s.split(1, (2, 3))", "1 is no loop"),
        ("s.split()", "has arguments that the primitive does not take"),
        ('s.vectorize(s.stage("C")["j"], lanes="all")', "line 2 of the trace"),
        ('s.split(s.stage("C")["j"], (None, 1.5))', "line 2 of the trace"),
        ('s.split(s.stage("Nobody")["j"], (None, 2))', "there is no stage 'Nobody'"),
        ("a, b = s.stage('C')", "line 2 of the trace"),
        ("while True: pass", "neither a call of a primitive nor an assignment"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_sentence(line: str, why: str) -> None:
    with pytest.raises(ScheduleError, match="line 2 of the trace") as error:
        read(TASK.dag, f"def schedule(s):\n    {line}")
    assert why in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "def schedule(s):",
        "def schedule(t):\n    pass",
        "class A: pass",
        "(" * 5000,
        "\x00",
        "pass\npass",
        "a" * (LONGEST + 1),
    ],
    ids=range(9),
)
def test_what_is_no_function_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError):
        read(TASK.dag, text)


def test_a_trace_of_another_computation_is_refused() -> None:
    other = Task(workloads.softmax(7, 9), WIDE)
    with pytest.raises(ScheduleError, match="there is no stage 'C'"):
        al.replay(other, SMALL)
    with pytest.raises(ScheduleError, match=r"leaves C\.i, C\.j"):
        al.replay(TASK, SKETCH.text)
    with pytest.raises(ArgumentError, match="a int is no trace"):
        al.replay(TASK, 5)  # type: ignore[arg-type]
