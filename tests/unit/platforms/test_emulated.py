"""The target "emulated": a GPU's programs on this machine's CPU, by the whole way that programs take."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.loops.kernel_module import When
from ansorlite.machine.gpu import A100, EMULATED, H100, MALI, Gpu
from ansorlite.platforms import build, finished
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import GPUS, Target, resolve
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.gpu_programs import GOLDEN

TARGET = resolve("emulated")


@pytest.mark.parametrize("name", GOLDEN)
def test_kernels_of_programs_with_blocks_and_threads(name: str) -> None:
    program = GOLDEN[name]
    compiled = build(program.function, TARGET)
    assert "thread " not in compiled.loops
    kernel = Kernel(compiled, program.function.params, TARGET)
    *inputs, _ = program.arrays()
    np.testing.assert_allclose(kernel(*inputs), program.meaning(*inputs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "tensors", [workloads.matmul_bias_relu(32, 48, 24), workloads.softmax(16, 40)], ids=["product", "softmax"]
)
def test_tuning_goes_the_whole_way(tmp_path: Path, tensors: list[te.Tensor]) -> None:
    task = al.Task(tensors, "emulated")
    result = al.tune(task, trials=2, database=tmp_path / "tuning.db", progress=False)
    assert np.isfinite(result.best_latency)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(tensor.shape, dtype=np.float32) for tensor in task.dag.inputs]
    kernel = al.compile(task, database=tmp_path / "tuning.db")
    np.testing.assert_allclose(kernel(*inputs), evaluate(task.dag, inputs)[0], rtol=1e-4, atol=1e-5)


def test_targets_of_gpus_travel_as_plain_data() -> None:
    for target in (*GPUS.values(), TARGET):
        assert Target.of(json.loads(json.dumps(dataclasses.asdict(target)))) == target
    others = {name: target for name, target in GPUS.items() if name != "a100"}
    assert GPUS["a100"] == GPUS["sm_80"]
    assert len({target.key for target in (*others.values(), TARGET, resolve("llvm"))}) == len(others) + 2


@pytest.mark.parametrize("gpu", [A100, H100, MALI, EMULATED])
def test_a_block_has_no_more_than_its_multiprocessor(gpu: Gpu) -> None:
    assert gpu.block_threads <= gpu.threads
    assert gpu.block_shared <= gpu.shared
    assert gpu.block_threads % gpu.warp == 0


def test_loops_of_gpus_stay_as_they_are_for_gpus() -> None:
    for target in GPUS.values():
        (function,) = finished(GOLDEN["softmax"].function, target).at(When.CALL)
        assert function is GOLDEN["softmax"].function
