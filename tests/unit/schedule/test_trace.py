"""Traces as text: what they print, and what is refused when they are read."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ansorlite as al
from ansorlite.errors import ArgumentError, ScheduleError
from ansorlite.schedule.trace_reader import LONGEST, read
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces import builders
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


def test_programs_have_the_computation_in_common_that_they_are_rewritten_to() -> None:
    task = Task(workloads.matmul_relu(12, 20, 9), WIDE)
    traces = [f'''def schedule(s):
    C = s.stage("C")
    C_local = s.cache_write(C, name="C_local")
    i0, i1 = s.split(C_local["i"], ({12 // n}, {n}))''' for n in (2, 3)]  # fmt: skip
    one, other = (read(task.dag, trace) for trace in traces)
    assert one.dag is other.dag
    assert one.dag is not task.dag
    assert one.structure != other.structure


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


def _asked_ahead(s: al.Schedule) -> None:
    s.prefetch("C", "A", at=s.stage("C")["k"], distance=s.sample((1, 2, 4), name="distance"))


def _padded(s: al.Schedule) -> None:
    s.cache_read("C", "B", at=s.stage("C")["i"], layout="packed", name="P")
    s.storage_align("P", s.stage("C")["k"], s.sample((8, 16), name="factor"), s.sample((0, 4), name="offset"))


def _written_out(s: al.Schedule) -> None:
    s.unroll(s.stage("D")["j"], max_steps=s.sample((4, 1 << 30), name="steps"))


def _at_loops_never_named(s: al.Schedule) -> None:
    s.compute_at("C", s.sample_location("C", name="at"))
    s.parallel(s.stage("D")["i"], depth=s.sample((0, 1), name="depth"))


def _at_loops_named_or_not(s: al.Schedule) -> None:
    s.cache_read("C", "B", at=s.sample((None, s.stage("C")["i"]), name="at"), layout="plain", name="P")
    s.cache_read("C", "A", at=s.sample((s.stage("C")["k"], None, s.stage("C")["i"]), name="there"), layout="plain", name="Q")
    s.parallel(s.stage("D")["i"])


def _made_of_others(s: al.Schedule) -> None:
    x, y, tile = s.sample((1, 2, 5), name="x"), s.sample((1, 3), name="y"), s.sample_tile(s.stage("C")["i"], 3, name="tile")
    s.split(s.stage("C")["i"], [None, tile[2] * 2])
    s.split(s.stage("C")["j"], [None, x + y])
    s.split(s.stage("D")["j"], [None, 16 // y])


@pytest.mark.parametrize(
    "function", [_asked_ahead, _padded, _written_out, _at_loops_never_named, _at_loops_named_or_not, _made_of_others]
)
def test_the_row_of_a_trace_of_a_function_is_found_again(function: builders.ScheduleFunction) -> None:
    """Whether it says what is so by default, which stage it names first, and whatever a number is made of."""
    (sketch,) = builders.sketches_of(TASK, builders.builder_of(function))
    for row in itertools.product(*(range(hole.size) for hole in sketch.holes)):
        candidate = sketch.candidate(row)
        found = sketch.row_of(candidate)
        assert found is not None, candidate.trace
        assert sketch.candidate(found) == candidate
        assert str(read(TASK.dag, candidate.trace).trace) == candidate.trace


def test_numbers_that_no_row_makes() -> None:
    (sketch,) = builders.sketches_of(TASK, builders.builder_of(_made_of_others))
    trace = sketch.candidate((0, 0, 0)).trace
    assert "C_j = " not in trace
    assert "(None, 2)" in trace
    assert sketch.row_of(Candidate(trace.replace("(None, 2)", "(None, 9)"))) is None
    assert sketch.row_of(Candidate(trace.replace("(None, 2)", f"(None, {'9' * 5000})"))) is None


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
