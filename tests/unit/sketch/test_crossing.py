"""Windows that slide in strides along the natural lanes: another axis is offered, along which they stand still."""

from dataclasses import replace

import numpy as np

from ansorlite import te
from ansorlite.machine.families import WIDE
from ansorlite.programs.kernels import compile_candidate
from ansorlite.schedule.primitives import Reorder, Vectorize
from ansorlite.search import default_candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tiling import crossing_lane
from ansorlite.spaces import derive
from ansorlite.target import host
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor
from ansorlite.topi.conv import conv

#: Which program is the default depends on the machine's constants and caches; here it must not.
TARGET = replace(host(threads=1), machine=WIDE, l1=32 << 10, l2=128 << 10, l3=8 << 20)


def convolution(stride: int, size: int = 64) -> Task:
    x, w = te.placeholder((1, 3, size, size), name="X"), te.placeholder((32, 3, 3, 3), name="W", constant=True)
    return Task([x, w, conv(x, w, strides=[stride, stride], before=[1, 1], after=[1, 1])], target=TARGET)


def lanes(sketch: Sketch, stage: Tensor) -> set[str]:
    """The axes that the stage, or the tile that it is computed in, is vectorised along."""
    loops = [step.loop for step in sketch.trace.steps if isinstance(step, Vectorize)]
    return {sketch.structure.axis(loop).name for loop in loops if loop.stage.startswith(stage.name)}


def crossing(task: Task) -> Axis | None:
    return crossing_lane(task.dag, task.dag.outputs[0], TARGET)


def test_only_where_a_window_moves_in_strides() -> None:
    strided = convolution(2)
    assert crossing(strided) is strided.dag.outputs[0].axes[1]
    assert crossing(convolution(1)) is None


def test_also_where_another_axis_is_offered_along_which_it_slides() -> None:
    """Rows of 35 are no whole vectors, so the rows themselves are offered as lanes, which load no better."""
    ragged = convolution(2, size=70)
    assert crossing(ragged) is ragged.dag.outputs[0].axes[1]


def test_only_where_little_is_packed_in_every_call() -> None:
    """Of a few places of many channels, the weights are more than the image."""
    for constant, expected in ((False, None), (True, 1)):
        x, w = te.placeholder((1, 64, 64), name="X"), te.placeholder((64, 64, 3), name="W", constant=constant)
        task = Task([x, w, conv(x, w, strides=[2], before=[1], after=[1])], target=TARGET)
        assert crossing(task) is (None if expected is None else task.dag.outputs[0].axes[expected])


def test_the_other_sketches_stay() -> None:
    stage = convolution(2).dag.outputs[0]
    found = [lanes(sketch, stage) for sketch in derive(convolution(2))]
    assert {stage.axes[3].name} in found
    assert {stage.axes[1].name} in found


def test_register_tiles_are_of_neighbours() -> None:
    """Rows of the image are in the outer bands alone."""
    stage = convolution(2).dag.outputs[0]
    (other,) = (sketch for sketch in derive(convolution(2)) if lanes(sketch, stage) == {stage.axes[1].name})
    (reorder,) = (step for step in other.trace.steps if isinstance(step, Reorder))
    names = [loop.name for loop in reorder.loops]
    last_sum = max(number for number, loop in enumerate(reorder.loops) if other.structure.axis(loop).reduce)
    assert names[last_sum + 1 :] == [f"{stage.axes[3].name}3", f"{stage.axes[1].name}3"]
    assert f"{stage.axes[2].name}2" not in names


def test_stores_are_transposed_and_right() -> None:
    task = convolution(2)
    stage = task.dag.outputs[0]
    (other,) = (sketch for sketch in derive(task) if lanes(sketch, stage) == {stage.axes[1].name})
    kernel = compile_candidate(task, default_candidate(task, [other]))
    assert "scatter" not in kernel.source("llvm")
    rng = np.random.default_rng(0)
    data = [rng.standard_normal(t.shape).astype(np.float32) for t in task.dag.inputs]
    np.testing.assert_allclose(kernel(*data), evaluate(task.dag, data)[0], rtol=1e-4, atol=1e-4)
