"""Devices: the CPU's memory, and that kernels, models and measurements copy to and from a device whose memory is its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import ansorlite as al
from ansorlite import te
from ansorlite.errors import TargetError
from ansorlite.frontends.onnx import load_any
from ansorlite.graph.executable import Executable
from ansorlite.graph.hybrid import compile_any
from ansorlite.graph.shared import SharedWeights
from ansorlite.measure import MeasureSettings, native
from ansorlite.measure.bench import Bench
from ansorlite.measure.protocol import Compare, Prepare, Run, Status
from ansorlite.runtime.cpu import Cpu
from ansorlite.runtime.device import Device
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.timing import TimingSettings
from ansorlite.search import default_candidate
from ansorlite.sketch.candidate import NAIVE
from ansorlite.spaces import derive
from ansorlite.target import NAMED, Target, this_machine
from tests.far import Far, far
from tests.unit.graph.support import Meaning


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    yield far(monkeypatch)
    device_of.cache_clear()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def product(target: Target) -> al.Task:
    """A product with constant weights: some of it is prepared."""
    a, b = te.placeholder((33, 48), name="A"), te.placeholder((48, 64), name="B", constant=True)
    k = te.reduce_axis(48, name="k")
    return al.Task([a, b, te.compute((33, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")], target)


def test_the_memory_of_a_cpu_is_the_hosts() -> None:
    device: Device = Cpu(this_machine())
    block = device.alloc(1000)
    assert block.address % 64 == 0
    assert block.array.nbytes == 1000
    assert not block.array.any()
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    (address,), memories = device.place([array])
    assert not memories
    device.view(address, (2, 3), "float32")[0, 0] = 7
    assert array[0, 0] == 7
    device.free(block)
    assert (block.address, block.array.size) == (0, 0)


def test_what_has_no_device_is_refused() -> None:
    other = replace(NAMED["aarch64"], triple="riscv64-unknown-linux-gnu")
    with pytest.raises(TargetError, match=r"llvm riscv64; the platforms are: llvm x86_64, llvm aarch64"):
        device_of(other)


def test_a_kernel_runs_on_memory_of_its_own(target: Target, rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(33, 48)).astype("f4"), rng.normal(size=(48, 64)).astype("f4")
    kernel = al.compile(product(target))
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-4)
    out = np.empty((33, 64), np.float32)
    prepared = kernel.prepare(B=b)
    prepared(a, out=out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)
    assert prepared.benchmark(a, settings=TimingSettings(min_seconds=0.0)).best > 0


@pytest.mark.parametrize("kernels", ["compiled", "in Python"])
def test_a_model_runs_on_memory_of_its_own(target: Target, rng: np.random.Generator, kernels: str) -> None:
    weights = {"v": rng.normal(size=(24, 40)).astype("f4"), "w": rng.normal(size=(40, 24)).astype("f4")}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])],
        "products",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 24])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 24])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opened = load_any(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), target=target, dims={"n": 5}
    )
    model = opened.at({}) if hasattr(opened, "at") else opened
    x = rng.normal(size=(5, 24)).astype("f4")
    shared = SharedWeights()
    for weights_of in (None, shared, shared):
        program = compile_any(model, al.compile if kernels == "compiled" else Meaning, weights_of)  # type: ignore[arg-type]
        assert isinstance(program, Executable)
        np.testing.assert_allclose(program(x)["y"], x @ weights["v"] @ weights["w"], rtol=1e-4, atol=1e-4)
        results, nanoseconds = program.timed({"x": x})
        np.testing.assert_array_equal(results["y"], program(x)["y"])
        assert len(nanoseconds) == program.steps


def test_programs_are_measured_on_memory_of_its_own(target: Target, tmp_path: Path) -> None:
    task = product(target)
    best = default_candidate(task, derive(task))
    for name, candidate in (("best", best), ("naive", NAIVE)):
        (tmp_path / name).write_bytes(native.build(task, candidate).code)
    (tmp_path / "idle").write_bytes(b"")
    backend = SimpleNamespace(load=lambda *given: native.load(*given) if given[1] else lambda _: None)
    bench = Bench(backend, MeasureSettings(repeat_seconds=0.0001), lambda _: None)  # type: ignore[arg-type]
    reference = str(tmp_path / "reference")
    assert bench.prepare(task, Prepare(task.key, reference)).status is Status.OK
    answer = bench.run(task, Run(task.key, str(tmp_path / "best"), reference, best=None, rival=None))
    assert (answer.status, answer.error) == (Status.OK, "")
    # What the program before has left is not taken for the output of one that stores nothing.
    idle = bench.run(task, Run(task.key, str(tmp_path / "idle"), reference, best=None, rival=None))
    assert idle.status is Status.WRONG
    again = Bench(native, MeasureSettings(repeat_seconds=0.0001), lambda _: None)
    turn = again.compare(task, Compare(task.key, str(tmp_path / "naive"), str(tmp_path / "best"), 10.0))
    assert turn.status in (Status.OK, Status.SLOW)
    # The arrays of the task's first workplace, whose outputs were the reference of the second.
    device = device_of(target)
    assert isinstance(device, Far)
    assert device.freed == 3
