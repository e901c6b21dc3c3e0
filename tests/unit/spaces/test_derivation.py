"""Derivation: which sketches there are, that they are the same everywhere, and rules of a user's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ScheduleError
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.printer import text
from ansorlite.schedule.primitives import ComputeAt, Reorder, ReverseComputeAt, Step
from ansorlite.schedule.tiles import MAX_ROWS
from ansorlite.search.default import default_candidate
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.program import is_program, lower
from ansorlite.sketch.rules import CPU_RULES
from ansorlite.sketch.rules.inline import ALWAYS_INLINE
from ansorlite.sketch.rules.skip import SKIP_STAGE
from ansorlite.sketch.state import Rule
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.serialize import dump, load
from tests import workloads
from tests.strategies import arrays_for, assert_close
from tests.targets import NARROW, WIDE

ROOT = Path(__file__).parents[3]

TASKS = {
    "matmul": workloads.matmul(14, 18, 9),
    "conv2d": workloads.conv2d_bias_relu(1, 4, 7, 9, 6),
    "softmax": workloads.softmax(7, 37),
    "layer_norm": workloads.layer_norm(7, 37),
    "sum_of_squares": workloads.sum_of_squares(1009),
    "two_outputs": workloads.two_outputs(8, 8, 8),
}
tasks = pytest.mark.parametrize("name", TASKS)


def signatures(dag: ComputeDAG | list[te.Tensor]) -> list[str]:
    return [sketch.signature for sketch in derive(Task(dag, WIDE))]


@tasks
def test_sketches_are_the_same_every_time_and_each_has_its_own_name(name: str) -> None:
    found = signatures(TASKS[name])
    assert found == signatures(TASKS[name])
    assert len(set(found)) == len(found)


@tasks
def test_a_task_that_has_travelled_as_data_has_the_same_sketches(name: str) -> None:
    dag = ComputeDAG.of(TASKS[name])
    travelled = load(json.loads(json.dumps(dump(dag))))
    here, there = derive(Task(dag, WIDE)), derive(Task(travelled, WIDE))
    assert [s.text for s in here] == [s.text for s in there]
    assert [s.signature for s in here] == [s.signature for s in there]
    for a, b in zip(here, there, strict=True):
        row = TileSpace(a).sample(1, np.random.default_rng(0))[0]
        assert text(a.lower(row)) == text(b.lower(row))


@pytest.mark.parametrize("name", ["conv2d", "layer_norm"])
def test_another_process_derives_the_same_sketches_and_the_same_default(name: str) -> None:
    task = Task(TASKS[name], WIDE)
    default = default_candidate(task, derive(task))
    other = subprocess.run(
        [sys.executable, "-m", "tests.unit.sketch.describe"],
        input=json.dumps(dump(task.dag)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "17"},
        check=True,
    )
    assert json.loads(other.stdout) == {"signatures": signatures(task.dag), "default": default.trace}


def test_signatures_tell_choices_apart() -> None:
    assert not set(signatures(workloads.matmul(14, 18, 9))) & set(signatures(workloads.matmul(14, 20, 9)))
    narrow = {sketch.signature for sketch in derive(Task(workloads.matmul(14, 18, 9), NARROW))}
    assert not set(signatures(workloads.matmul(14, 18, 9))) & narrow


@tasks
def test_the_default_is_a_program_of_the_task(name: str) -> None:
    task = Task(TASKS[name], WIDE)
    found = derive(task)
    default = default_candidate(task, found)
    assert default == default_candidate(task, found)
    assert default != NAIVE
    arrays = arrays_for(task.dag, np.random.default_rng(0))
    expected = evaluate(task.dag, arrays)
    outputs = [np.zeros_like(e) for e in expected]
    interpret(lower(task, default), [*arrays, *outputs])
    assert_close(task.dag, outputs, expected)


@tasks
def test_the_loops_as_written_are_a_program_too(name: str) -> None:
    task = Task(TASKS[name], WIDE)
    arrays = arrays_for(task.dag, np.random.default_rng(0))
    expected = evaluate(task.dag, arrays)
    outputs = [np.zeros_like(e) for e in expected]
    function = lower(task, NAIVE)
    assert not re.search("parallel|vectorized|unrolled", text(function))
    interpret(function, [*arrays, *outputs])
    assert_close(task.dag, outputs, expected)


@tasks
def test_a_candidate_needs_no_sketches_and_is_found_again_in_its_own(name: str) -> None:
    task = Task(TASKS[name], WIDE)
    sketches, rng = derive(task), np.random.default_rng(0)
    for sketch in sketches:
        for row in TileSpace(sketch).sample(3, rng):
            candidate = sketch.candidate(row)
            assert is_program(task, candidate)
            assert text(lower(task, candidate)) == text(sketch.lower(row))
            found = [each.row_of(candidate) for each in sketches]
            assert [each is sketch for each, other in zip(sketches, found, strict=True) if other is not None] == [True]
            (other,) = (each for each in found if each is not None)
            assert sketch.candidate(other) == candidate


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        ("0123456789ab", "the trace is not what a trace prints"),
        ('def schedule(s):\n    s.inline(s.stage("Z"))', "line 2 of the trace: there is no stage 'Z'"),
        ('def schedule(s):\n    s.vectorize(s.stage("C")["j"], lanes=s.sample((1, 8), name="lanes"))', "leaves lanes open"),
    ],
)
def test_a_candidate_that_is_no_program_of_the_task_is_refused(trace: str, why: str) -> None:
    task = Task(TASKS["matmul"], WIDE)
    assert not is_program(task, Candidate(trace))
    with pytest.raises(ScheduleError, match=why):
        lower(task, Candidate(trace))


@pytest.mark.parametrize("shape", [(40,), (3, 40)])
def test_a_sum_into_a_single_element_of_no_dimensions(shape: tuple[int, ...]) -> None:
    """Its epilogue follows a nest that has no loops but those that add up."""
    x = te.placeholder(shape, name="X")
    axes = [te.reduce_axis(extent, name=name) for extent, name in zip(shape, "rs", strict=False)]
    task = Task([x, te.compute((), lambda: te.sum(te.maximum(x[tuple(axes)], 0.0), axis=axes), name="Y")], WIDE)
    rng = np.random.default_rng(0)
    arrays = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, arrays)
    for sketch in derive(task):
        for row in TileSpace(sketch).sample(3, rng):
            outputs = [np.zeros_like(e) for e in expected]
            interpret(sketch.lower(row), [*arrays, *outputs])
            assert_close(task.dag, outputs, expected)


def test_every_output_gets_a_nest_and_every_stage_a_place() -> None:
    for tensors in TASKS.values():
        for sketch in derive(Task(tensors, WIDE)):
            placed = {stage for step in sketch.trace.steps if (stage := _shaped(step)) is not None}
            assert {t.name for t in sketch.structure.dag.computes} == placed
            names = [hole.name for hole in sketch.holes]
            assert len(set(names)) == len(names)


def _shaped(step: Step) -> str | None:
    """The stage whose loops or place a step gives."""
    match step:
        case Reorder(loops):
            return loops[0].stage
        case ReverseComputeAt(stage) | ComputeAt(stage):
            return stage.name
    return None


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "adding_a_rule.md").read_text(), re.MULTILINE | re.DOTALL)


def documented_rule() -> Rule:
    """The rule that ``docs/adding_a_rule.md`` adds."""
    namespace: dict[str, object] = {}
    exec(blocks()[0], namespace)
    rule = namespace["FLAT_TILING"]
    assert isinstance(rule, Rule)
    return rule


def test_a_rule_in_front_adds_its_sketches() -> None:
    task = Task(workloads.matmul(16, 20, 6), WIDE)
    plain, with_rule = derive(task), derive(task, (documented_rule(), *CPU_RULES))
    new = {s.signature for s in with_rule} - {s.signature for s in plain}
    assert {s.signature for s in plain} < {s.signature for s in with_rule}
    flat = [s.text for s in with_rule if s.signature in new]
    assert any('C = s.stage("C")' in printed and "cache_write" not in printed for printed in flat)
    assert all("s.reorder(i0, j0, k0, i1, j1)\n" in printed for printed in flat)
    # A long reduction is none of its business.
    long = Task(workloads.matmul(16, 20, 64), WIDE)
    assert [s.signature for s in derive(long, (documented_rule(), *CPU_RULES))] == [s.signature for s in derive(long)]


def test_with_no_rule_but_skipping_every_stage_is_settled() -> None:
    task = Task(TASKS["conv2d"], WIDE)
    (sketch,) = derive(task, (ALWAYS_INLINE, SKIP_STAGE))
    rng = np.random.default_rng(0)
    arrays = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, arrays)
    for row in TileSpace(sketch).sample(3, rng):
        outputs = [np.zeros_like(e) for e in expected]
        interpret(sketch.lower(row), [*arrays, *outputs])
        assert_close(task.dag, outputs, expected)


def test_a_transposed_operand_is_packed_from_where_its_elements_are() -> None:
    """Seen through the transpose, its rows look contiguous: vectors would gather elements a row of the source apart."""
    q, k = te.placeholder((16, 4, 24), name="Q"), te.placeholder((16, 4, 24), name="K")
    turned = te.compute((4, 24, 16), lambda h, d, n: k[n, h, d], name="turned")
    r = te.reduce_axis(24, name="r")
    scores = te.compute((4, 16, 16), lambda h, m, n: te.sum(q[m, h, r] * turned[h, r, n], axis=r), name="scores")
    for sketch in derive(Task([q, k, scores], WIDE)):
        assert 's.cache_read(scores, "K"' in sketch.text or 's.cache_read(scores_local, "K"' in sketch.text


def test_whatever_follows_a_reduction_element_by_element_runs_in_its_tiles() -> None:
    """A scale and a shift for each channel are two reads that miss axes: once a reason to tile them by themselves."""
    *inputs, conv = workloads.conv2d(1, 4, 7, 9, 6)
    scale, shift = te.placeholder((6,), name="scale"), te.placeholder((6,), name="shift")
    out = te.compute(conv.shape, lambda n, c, y, x: conv[n, c, y, x] * scale[c] + shift[c], name="out")
    for sketch in derive(Task([*inputs, scale, shift, out], WIDE)):
        followers = [step.stage.name for step in sketch.trace.steps if isinstance(step, ReverseComputeAt)]
        assert {stage: sketch.structure.anchor(stage) for stage in followers} == {"out": conv.name}


def _elementwise(n: int) -> list[te.Tensor]:
    a = te.placeholder((n,), name="A")
    return [a, te.compute((n,), lambda i: te.exp(a[i]), name="B")]


@pytest.mark.parametrize("target", [WIDE, "emulated", "h100"], ids=["cpu", "emulated", "h100"])
@pytest.mark.parametrize("extent", [14414400, 1 << 25])
def test_no_extent_has_too_many_tiles(extent: int, target: Target | str) -> None:
    """Of 14,414,400 there are 5,906,250 chains of divisors in five parts."""
    for tensors in (_elementwise(extent), workloads.sum_of_squares(extent), workloads.matmul(extent, 32, 16)):
        task = Task(tensors, target)
        found = derive(task)
        assert found
        for sketch in found:
            assert all(1 <= hole.size <= MAX_ROWS for hole in sketch.holes)
            space = TileSpace(sketch)
            row = space.sample(1, np.random.default_rng(0))[0]
            assert lower(task, sketch.candidate(row))
