"""Element-wise programs of GPUs in which a block walks several tiles: numpy = a CPU, and features as read off the loops."""

from __future__ import annotations

import numpy as np

from ansorlite import te
from ansorlite.features import extract
from ansorlite.features.gpu import GPU_COLUMN, gpu_statements
from ansorlite.features.gpu_reference import gpu_reference
from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.nodes import LoopKind
from ansorlite.loops.simplify import simplify
from ansorlite.loops.verifier import verify
from ansorlite.sketch.rules.gpu.nests import MANY
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import resolve
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from tests.contracts.test_right_numbers import compiled
from tests.strategies import arrays_for, assert_close

GPU = resolve("emulated")


def _doubled(rows: int, columns: int) -> ComputeDAG:
    x = te.placeholder((rows, columns), name="X")
    return ComputeDAG.of([x, te.compute((rows, columns), lambda i, j: x[i, j] * 2.0, name="Y")])


def test_a_block_may_walk_several_tiles_of_very_many_elements() -> None:
    dag = _doubled(3, MANY // 3 + 1)
    (sketch,) = derive(Task(dag, GPU))
    rng = np.random.default_rng(4)
    rows = TileSpace(sketch).sample(200, rng)
    features = extract(sketch, rows)
    steps = np.exp2(features[:, 0, GPU_COLUMN["steps"]]) - 1
    chosen = rows[[int(steps.argmax()), int(steps.argmin()), 0]]
    assert steps.max() > 64, "more than a thread has in straight-line code"
    inputs = arrays_for(dag, rng)
    for row in chosen:
        function = sketch.lower(row)
        verify(function)
        made = compiled(dag, function, inputs, GPU)
        assert made is not None
        assert_close(dag, made, evaluate(dag, inputs))
        assert GPU.gpu is not None
        (slow,) = gpu_reference(kernel_module(simplify(function)), gpu_statements(sketch.fold(row)), GPU.gpu)
        np.testing.assert_allclose(extract(sketch, row[None])[0], slow, rtol=0, atol=1e-9)


def test_fewer_elements_have_no_such_loop() -> None:
    (many,), (few,) = (derive(Task(_doubled(4, columns), GPU)) for columns in (MANY, 64))
    loops = [[loop.bound for loop in sketch.fold((0,) * len(sketch.holes)).nests[0].loops] for sketch in (many, few)]
    block, thread = LoopKind.BLOCK, LoopKind.THREAD
    assert loops == [[block, None, thread, None], [block, thread, None]]
