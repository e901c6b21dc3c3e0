"""Traces that somebody changed: each is refused in one sentence, in little time and memory, or is a program."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ScheduleError
from ansorlite.loops.interpreter import interpret
from ansorlite.schedule.primitives import PRIMITIVES
from ansorlite.schedule.trace_reader import MOST_STATEMENTS, read
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import is_program, lower
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.strategies import arrays_for, assert_close
from tests.targets import WIDE

TASK = Task(workloads.matmul_bias_relu(512, 512, 512), WIDE)

#: What stands where something else belongs.
VALUES = ("None", "True", "0", "-1", "2.5", '"x"', "()", "(1, 2)", "C", 'C["i"]', '(C["i"], C["k"])', "((1, 2), (3, (4,)))")


@pytest.mark.parametrize("method", PRIMITIVES)
def test_arguments_of_another_kind(method: str) -> None:
    told = []
    for first in VALUES:
        for more in ("", *(f", {value}" for value in VALUES), *(f", {value}, {value}" for value in VALUES)):
            trace = f'def schedule(s):\n    C = s.stage("C")\n    s.{method}({first}{more})'
            try:
                lower(TASK, Candidate(trace))
            except ScheduleError as error:
                told.append(str(error))
    assert told
    assert not any("\n" in each for each in told)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('s.split(C["i"], (2.5, None))', "split takes a sequence of a whole number or None as its factors, not (2.5, None)"),
        ('s.vectorize(C["j"], lanes="8")', "vectorize takes a whole number as its lanes, not '8'"),
        ('s.parallel((C["i"],), depth=1.5)', "parallel takes a whole number or None as its depth, not 1.5"),
        ('s.stream(C, on="yes")', "stream takes a whole number as its on, not 'yes'"),
        ("s.cache_write(C, name=5)", "cache_write takes a name as its name, not 5"),
        ('s.cache_read(C, "B", at=C)', "cache_read takes a loop or None as its at, not <stage C: i j k>"),
        ("x = 1 // 0", "division or modulo by zero"),
        ('i0, i1 = s.split(C["i"], (None, 10000000000000000000000))', "a number that is larger than any in a trace"),
    ],
)
def test_what_is_wrong_is_named(line: str, why: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        read(TASK.dag, f'def schedule(s):\n    C = s.stage("C")\n    {line}')
    assert why in str(refused.value)
    assert "line 3 of the trace" in str(refused.value)


def test_a_trace_that_depends_on_what_it_samples() -> None:
    trace = 'def schedule(s):\n    C = s.stage("C")\n    s.sample_tile(C["i"], s.sample((1, 2), name="parts"))'
    with pytest.raises(ScheduleError, match="line 3 of the trace depends on what parts is"):
        read(TASK.dag, trace)
    assert not is_program(TASK, Candidate(trace))


def test_numbers_do_not_grow_without_limit() -> None:
    squares = "\n    ".join(["a = 3", *(["a = a * a"] * 60)])
    with pytest.raises(ScheduleError, match="a number that is larger than any"):
        read(TASK.dag, f"def schedule(s):\n    {squares}")


def test_loops_are_not_split_without_limit() -> None:
    splits = "\n    ".join(['a = s.stage("C")["i"]', *(["a, = s.split(a, (None,))"] * MOST_STATEMENTS)])
    with pytest.raises(ScheduleError, match="4,097 statements; none has more than 4,096"):
        read(TASK.dag, f"def schedule(s):\n    {splits}")


def test_a_program_samples_nothing_however_large() -> None:
    trace = 'def schedule(s):\n    C = s.stage("C")\n    s.split(C["i"], s.sample_tile(C["i"], 8, max_innermost=512, name="C.i"))'
    with pytest.raises(ScheduleError, match=r"the trace leaves C\.i open; a program decides all"):
        lower(TASK, Candidate(trace))


@pytest.mark.parametrize(
    "head", ["@print\ndef schedule(s):", "def schedule(s=1):", "def schedule(s, *t):", "def schedule(s: int):"]
)
def test_a_function_of_something_else(head: str) -> None:
    with pytest.raises(ScheduleError, match="one function of the schedule s"):
        read(TASK.dag, f"{head}\n    pass")


def product(m: int, n: int, k: int) -> list[te.Tensor]:
    """The product of matrices under other names of its axes."""
    a, b, r = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B"), te.reduce_axis(k, name="r")
    return [a, b, te.compute((m, n), lambda x, y: te.sum(a[x, r] * b[r, y], axis=r), name="C")]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (workloads.matmul(64, 48, 24), r"loop . of stage C\w* has (64|48|24) iterations, of which the factors .* cover fewer"),
        (product(16, 24, 12), r"line \d of the trace: stage C\w* has no loop i; it has x, y, r"),
        (
            workloads.batch_matmul(2, 16, 24, 12),
            r"the loops i0, j0 of stage C\w* are to be parallel, but the outermost ones are z",
        ),
        (workloads.sum_of_squares(16), "line 2 of the trace: there is no stage 'C'; there are X, squares"),
    ],
    ids=["larger", "other axes", "one axis more", "no such stage"],
)
def test_a_trace_of_another_computation(other: list[te.Tensor], why: str) -> None:
    """Where its loops do not fit, one sentence says what of them."""
    task, rng = Task(other, WIDE), np.random.default_rng(0)
    for sketch in derive(Task(workloads.matmul(16, 24, 12), WIDE)):
        for row in TileSpace(sketch).sample(4, rng):
            with pytest.raises(ScheduleError, match=why) as refused:
                lower(task, sketch.candidate(row))
            assert "\n" not in str(refused.value)
            assert not is_program(task, sketch.candidate(row))


@pytest.mark.parametrize(
    "other", [workloads.matmul(8, 9, 5), workloads.matmul_relu(16, 24, 12)], ids=["smaller", "one stage more"]
)
def test_a_trace_that_fits_another_computation_is_a_program_of_it(other: list[te.Tensor]) -> None:
    """A trace names stages and loops, not sizes: what covers all iterations is legal, and computes what it should."""
    task, rng = Task(other, WIDE), np.random.default_rng(0)
    arrays = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, arrays)
    for sketch in derive(Task(workloads.matmul(16, 24, 12), WIDE)):
        for row in TileSpace(sketch).sample(3, rng):
            outputs = [np.zeros_like(each) for each in expected]
            interpret(lower(task, sketch.candidate(row)), [*arrays, *outputs])
            assert_close(task.dag, outputs, expected)
