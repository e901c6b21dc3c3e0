"""Which outputs are offered a way past the caches, and what the choice does to programs and their features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorlite import te
from ansorlite.cost_model.draft import Draft
from ansorlite.features import extract
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.visit import stores
from ansorlite.platforms import finished
from ansorlite.schedule.primitives import Stream
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.strategies import arrays_for, assert_close
from tests.targets import WIDE

#: A machine whose last cache holds next to nothing.
SMALL = replace(WIDE, l1=1 << 10, l2=2 << 10, l3=4 << 10)


def scaled(m: int, n: int) -> list[te.Tensor]:
    x, scale = te.placeholder((m, n), name="X"), te.placeholder((n,), name="scale")
    return [x, scale, te.compute((m, n), lambda i, j: x[i, j] * scale[j], name="Z")]


def streamed(tensors: list[te.Tensor], target: Target = SMALL) -> set[str]:
    found = (step for sketch in derive(Task(tensors, target)) for step in sketch.trace.steps)
    return {step.stage.name for step in found if isinstance(step, Stream)}


def test_what_the_last_cache_cannot_keep() -> None:
    assert streamed(scaled(8, 256)) == {"Z"}
    assert streamed(scaled(8, 256), WIDE) == set()
    # 4 KiB are written, 9 KiB are read and written.
    assert streamed(scaled(4, 256), replace(SMALL, l3=8 << 10)) == {"Z"}
    assert streamed(scaled(4, 256), replace(SMALL, l3=9 << 10)) == set()


def test_what_a_core_keeps_is_not_sent_past_it() -> None:
    assert streamed(scaled(2, 256)) == set()
    assert streamed(scaled(2, 257)) == {"Z"}


def test_epilogues_too_but_not_what_is_read_again() -> None:
    assert streamed(workloads.softmax(16, 256)) == {"softmax"}
    x = te.placeholder((16, 256), name="X")
    y = te.compute((16, 256), lambda i, j: te.exp(x[i, j]), name="Y")
    assert streamed([x, y, te.compute((16, 256), lambda i, j: y[i, j] + 1.0, name="Z")]) == {"Z"}


def test_short_rows_of_tiles_end_too_often() -> None:
    assert streamed(workloads.matmul_bias_relu(64, 63, 32)) == set()
    assert streamed(workloads.matmul_bias_relu(64, 64, 32)) == {"E"}


def _choices(sketch: Sketch, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same rows without and with streaming."""
    (hole,) = (number for number, hole in enumerate(sketch.holes) if hole.name.endswith(".stream"))
    plain, past = rows.copy(), rows.copy()
    plain[:, hole], past[:, hole] = 0, 1
    return plain, past


def test_programs_compute_the_same_and_differ_where_their_stores_do() -> None:
    task = Task(scaled(8, 256), SMALL)
    (sketch,) = derive(task)
    inputs = arrays_for(task.dag, np.random.default_rng(0))
    expected, found = evaluate(task.dag, inputs), 0
    plain, past = _choices(sketch, TileSpace(sketch).sample(30, np.random.default_rng(3)))
    keys = sketch.canonical(plain), sketch.canonical(past)
    for n, row in enumerate(past):
        function = sketch.lower(row)
        stream = any(store.streamed for store in stores(function.body))
        assert stream == (keys[0][n] != keys[1][n]).any()
        found += stream
        out = np.zeros_like(expected[0])
        interpret(function, [*inputs, out])
        assert_close(task.dag, [out], expected)
    assert 0 < found < len(past)


def test_features_are_those_of_the_loops_and_the_model_prefers_it() -> None:
    task = Task(scaled(64, 512), SMALL)
    (sketch,) = derive(task)
    rows = TileSpace(sketch).sample(30, np.random.default_rng(4))
    plain, past = _choices(sketch, rows)
    names = [facts.name for facts in population_facts(sketch.fold(past[0]))]
    fast = extract(sketch, past)
    for features, row in zip(fast, past, strict=True):
        slow = reference(finished(sketch.lower(row), SMALL), names, SMALL)
        np.testing.assert_allclose(features, slow[0], rtol=0, atol=1e-9)
    draft = Draft(SMALL)
    without, with_ = draft.seconds(extract(sketch, plain)), draft.seconds(fast)
    assert (with_ <= without).all()
    assert (with_ < without).any()
