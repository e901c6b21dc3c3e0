"""AutoTVM's templates: knobs declared by name, and the template of products and convolutions."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite.errors import ScheduleError
from ansorlite.loops.interpreter import interpret
from ansorlite.schedule.schedule import Schedule, Stage
from ansorlite.sketch.program import lower
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.autotvm import Annotations, Config, Splits, x86
from ansorlite.spaces.builders import builder_of, sketches_of
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.targets import WIDE

TASK = Task(workloads.matmul_relu(24, 32, 16), WIDE)
SUMS_ONCE = {
    "product": workloads.matmul(12, 20, 8),
    "product and ReLU": workloads.matmul_relu(24, 32, 16),
    "convolution": workloads.conv2d_bias_relu(1, 3, 6, 6, 8),
    "pooling": workloads.max_pool(1, 4, 8, 8),
    "sum of columns": workloads.sum_of_columns(12, 20),
}


def made(function: Callable[[Schedule], object], task: Task = TASK) -> tuple[Sketch, ...]:
    return sketches_of(task, builder_of(function))


@pytest.mark.parametrize("name", SUMS_ONCE)
def test_the_template_computes_what_the_task_says(name: str) -> None:
    task = Task(SUMS_ONCE[name], WIDE)
    (sketch,) = made(x86, task)
    rng = np.random.default_rng(0)
    arrays = [rng.random(tensor.shape).astype(tensor.dtype) for tensor in task.dag.inputs]
    wanted = evaluate(task.dag, arrays)
    for row in TileSpace(sketch).sample(4, rng):
        outputs = [np.zeros_like(each) for each in wanted]
        interpret(lower(task, sketch.candidate(row)), [*arrays, *outputs])
        for found, expected in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        (workloads.softmax(8, 8), "for tasks that sum once, and this one sums 2 times"),
        (workloads.transpose_add(8, 8), "for tasks that sum once, and this one sums 0 times"),
        (workloads.two_outputs(8, 8, 8), "for tasks of one output"),
    ],
)
def test_what_the_template_is_not_for(tensors: list[al.te.Tensor], why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        made(x86, Task(tensors, WIDE))


def test_the_lesson_of_a_product_with_tvms_names() -> None:
    def template(s: Schedule) -> None:
        cfg = Config(s)
        c = s.stage("C")
        i, j, k = c.loops
        i0, i1 = cfg.define_split("tile_y", i, num_outputs=2).apply(i)
        j0, j1 = cfg.define_split("tile_x", j, policy=Splits.POWER2, max_factor=16).apply(j)
        order = cfg.define_reorder("order", (k, i1), candidate=[(0, 1), (1, 0)])
        s.reorder(i0, j0, k, i1, j1)
        order.apply((k, i1))
        cfg.define_annotate("ann", (i1, j1), Annotations.UNROLL).apply((i1, j1))
        s.parallel((i0, j0), depth=cfg.define_knob("threads", (0, 1, 2)).val)

    sketches = made(template)
    assert len(sketches) == 2, "an order is a structure"
    holes = {hole.name: hole for hole in sketches[0].holes}
    assert list(holes) == ["tile_y", "tile_x.1", "ann.steps", "threads"]
    table = holes["tile_y"].table
    assert table is not None
    assert (np.prod(table.trips, axis=1) == 24).all(), "factors divide"
    assert holes["tile_x.1"].choices == (1, 2, 4, 8, 16)


def test_candidates_of_a_split_are_taken_as_they_are() -> None:
    def template(s: Schedule) -> None:
        i = s.stage("C")["i"]
        Config(s).define_split("tile_y", i, candidate=[(-1, 4), (3, 8)]).apply(i)

    assert ["(None, 4)" in each.text or "(3, 8)" in each.text for each in made(template)] == [True, True]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda cfg, c: cfg.define_split("t", c["i"], candidate=[(1, 2, 3)]), "give candidates of so many trips each"),
        (lambda cfg, c: cfg.define_split("t", c["i"], policy="odd"), "'odd' is not a valid Splits"),
        (lambda cfg, c: cfg.define_reorder("o", c.loops, policy="interleave"), "the policy 'interleave'"),
        (lambda cfg, c: cfg.define_reorder("o", c.loops, candidate=[(0, 0, 1)]), "give candidates of their positions"),
        (lambda cfg, _: cfg.define_annotate("a", ()), "annotates no loop"),
        (lambda cfg, _: (cfg.define_knob("k", (1, 2)), cfg.define_knob("k", (1, 2))), "there is a sample 'k' already"),
    ],
)
def test_what_is_wrong_with_a_knob(function: Callable[[Config, Stage], object], why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        made(lambda s: function(Config(s), s.stage("C")))


def test_the_preset_tunes_over_the_template(tmp_path: Path) -> None:
    task = al.Task(workloads.matmul_relu(24, 32, 16))
    result = al.tune(task, preset="autotvm-templates", trials=6, database=tmp_path / "t.db", progress=False)
    assert all("vectorize" in trial.candidate.trace for trial in result.history[1:])
    kernel = al.compile(task, space="ansorlite.spaces.autotvm:x86", database=tmp_path / "t.db")
    a, b = (np.random.default_rng(n).random(shape, dtype=np.float32) for n, shape in enumerate([(24, 16), (16, 32)]))
    np.testing.assert_allclose(kernel(a, b), np.maximum(a @ b, 0), rtol=1e-5)
