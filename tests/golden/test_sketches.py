"""The sketches of well-known computations, as text; each is executed too, on a small computation of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pytest

from ansorlite import te
from ansorlite.loops.arguments import argument
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.printer import text
from ansorlite.platforms import build
from ansorlite.schedule.primitives.step import Step, arguments
from ansorlite.schedule.refs import LoopRef, StageRef
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target, host
from ansorlite.task import Task
from ansorlite.te import dtypes
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.golden.compare import compare
from tests.running import kernel
from tests.strategies import arrays_for, assert_close
from tests.targets import WIDE


@dataclass(frozen=True)
class Golden:
    """A computation at the size it is known for, and the same one small enough to be interpreted.

    Both have the same sketches but for the extents.
    """

    full: Callable[[], list[te.Tensor]]
    small: Callable[[], list[te.Tensor]]


CASES: Final[Mapping[str, Golden]] = {
    "matmul": Golden(workloads.matmul, lambda: workloads.matmul(9, 32, 11)),
    "matmul_bias_relu": Golden(workloads.matmul_bias_relu, lambda: workloads.matmul_bias_relu(7, 32, 11)),
    "conv2d": Golden(workloads.conv2d_bias_relu, lambda: workloads.conv2d_bias_relu(1, 2, 5, 20, 16)),
    "conv2d_strided": Golden(
        lambda: workloads.conv2d_bias_relu(stride=2), lambda: workloads.conv2d_bias_relu(1, 4, 14, 14, 20, stride=2)
    ),
    "conv2d_dilated": Golden(
        lambda: workloads.conv2d_bias_relu(pad=2, dilation=2),
        lambda: workloads.conv2d_bias_relu(1, 2, 5, 20, 16, pad=2, dilation=2),
    ),
    "conv2d_grouped": Golden(
        lambda: workloads.conv2d_bias_relu(groups=4), lambda: workloads.conv2d_bias_relu(1, 8, 7, 16, 8, groups=4)
    ),
    "depthwise": Golden(workloads.depthwise, lambda: workloads.depthwise(1, 3, 7, 9)),
    "conv2d_transposed": Golden(workloads.conv2d_transposed, lambda: workloads.conv2d_transposed(1, 2, 4, 4, 16)),
    "softmax": Golden(workloads.softmax, lambda: workloads.softmax(37, 24)),
    "layer_norm": Golden(workloads.layer_norm, lambda: workloads.layer_norm(37, 24)),
    "sum_of_squares": Golden(workloads.sum_of_squares, lambda: workloads.sum_of_squares(1009)),
    "sum_of_columns": Golden(workloads.sum_of_columns, lambda: workloads.sum_of_columns(7, 520)),
    "transpose_add": Golden(workloads.transpose_add, lambda: workloads.transpose_add(24, 37)),
}

#: One program of each of these is kept as loop IR: the sketch, and the seed of its row.
PROGRAMS: Final[Mapping[str, tuple[int, int]]] = {"matmul_bias_relu": (0, 1), "conv2d": (0, 1), "softmax": (0, 2)}


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


def sketches(tensors: list[te.Tensor], target: Target = WIDE) -> tuple[Sketch, ...]:
    return derive(Task(tensors, target))


def one_row(sketch: Sketch, seed: int) -> np.ndarray:
    (row,) = TileSpace(sketch).sample(1, np.random.default_rng(seed))
    return row


@pytest.mark.parametrize("name", CASES)
def test_sketches(name: str, update: bool) -> None:
    found = sketches(CASES[name].full())
    printed = "\n\n".join(f"# sketch {number} of {len(found)}\n{sketch.text}" for number, sketch in enumerate(found, 1))
    compare(f"sketches/{name}.txt", printed, update)


@pytest.mark.parametrize("name", PROGRAMS)
def test_loop_nests(name: str, update: bool) -> None:
    number, seed = PROGRAMS[name]
    sketch = sketches(CASES[name].small())[number]
    row = one_row(sketch, seed)
    compare(f"programs/{name}.txt", f"# row {tuple(int(v) for v in row)}\n{text(sketch.lower(row))}", update)


def steps(sketch: Sketch) -> list[tuple[str, str]]:
    """The primitives and the stages that they are about, without sizes."""
    return [(step.method, _stage(step)) for step in sketch.trace.steps]


def _stage(step: Step) -> str:
    (_, first), *_ = arguments(step)
    match first:
        case StageRef(name) | LoopRef(name):
            return name
        case ((str(name), _), *_):  # of dimensions: those of the first tensor
            return name
        case (LoopRef(name), *_):
            return name
    raise AssertionError(step)


@pytest.mark.parametrize("name", CASES)
def test_each_computes_what_the_expression_says(name: str) -> None:
    tensors = CASES[name].small()
    task = Task(tensors, replace(WIDE, l1=256))  # what is larger than the cache at full size is so here
    rng = np.random.default_rng(0)
    inputs = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, inputs)
    full, small = sketches(CASES[name].full()), derive(task)
    assert [steps(sketch) for sketch in small] == [steps(sketch) for sketch in full], "not the sketches that are printed"
    for sketch in small:
        outputs = [np.zeros(t.shape, dtypes.NUMPY[t.dtype]) for t in task.dag.outputs]
        interpret(sketch.lower(one_row(sketch, 1)), [*inputs, *outputs], reorder=rng)
        assert_close(task.dag, outputs, expected)


@pytest.mark.parametrize("name", CASES)
def test_each_is_compiled_for_the_target(name: str) -> None:
    """As derived for the target itself: this machine, or the one that ANSORLITE_TARGET names."""
    task = Task(CASES[name].small(), host(threads=2))
    rng = np.random.default_rng(0)
    inputs = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, inputs)
    params = [argument(t) for t in (*task.dag.inputs, *task.dag.outputs)]
    for sketch in derive(task):
        compiled = build(sketch.lower(one_row(sketch, 1)), task.target)
        loaded = kernel(compiled, params, task.target)
        if loaded is not None:
            outputs = [np.full(t.shape, 77, dtypes.NUMPY[t.dtype]) for t in task.dag.outputs]
            loaded.bind(*inputs, *outputs)()
            assert_close(task.dag, outputs, expected)
