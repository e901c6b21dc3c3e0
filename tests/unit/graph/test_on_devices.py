"""Whole models on devices: weights there, temporaries by the memory plan, kernels in a row; NVIDIA's by CuPy's stand-in."""

from __future__ import annotations

import importlib.util
import os
import struct
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ansorlite as al
from ansorlite.codegen.entry import Address, Call, Move
from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.errors import ArgumentError
from ansorlite.platforms import build
from ansorlite.runtime.cuda import Cuda
from ansorlite.runtime.devices import device_of
from ansorlite.target import resolve
from tests.cupy_stand_in import StandIn
from tests.gpu_programs import SMALL

RNG = np.random.default_rng(0)
W1, W2 = (RNG.standard_normal(shape).astype(np.float32) for shape in ((4, 6), (6, 3)))
X = RNG.standard_normal((2, 4)).astype(np.float32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    device_of.cache_clear()
    with StandIn().installed() as stand_in:
        yield stand_in
    device_of.cache_clear()


def proto() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w2"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", (2, 4)), ("y", (2, 3))))
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(W1, "w1"), numpy_helper.from_array(W2, "w2")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def meaning(x: np.ndarray) -> np.ndarray:
    powers = np.exp(np.maximum(x @ W1, 0) @ W2)
    return powers / powers.sum(1, keepdims=True)


def test_a_model_on_a_gpu(gpu: StandIn) -> None:
    model = al.compile(al.from_onnx(proto(), target="cuda"))
    for x in (X, 2 * X, X):
        np.testing.assert_allclose(model(x=x)["y"], meaning(x), rtol=1e-5)
    outputs, nanoseconds = model.timed({"x": X})
    np.testing.assert_allclose(outputs["y"], meaning(X), rtol=1e-5)
    assert len(nanoseconds) == model.steps
    assert sum(nanoseconds) % 1000 == 0, "by the clock of the GPU"
    assert sum(nanoseconds) > 0
    assert gpu.gpu.launched
    with pytest.raises(ArgumentError, match="models for cuda are not exported; compile it for a CPU"):
        model.export("model.so")


def test_steps_on_the_same_memory_are_a_graph(gpu: StandIn) -> None:
    """Launched, captured, launched from the graph: the same three times. Other memory is another graph."""
    target = resolve("cuda")
    device = device_of(target)
    assert isinstance(device, Cuda)
    program = SMALL["element_wise"]
    loaded = device.load(build(program.function, target))
    # y = exp(x) + x; then x = y.
    call = Call("k", (Address(0, 0), Address(0, 0), Address(1, 0), Address(0, 0)))
    steps = device.link([call, Move(Address(1, 0), Address(0, 0), 400)], {"k": loaded})
    for _ in range(2):
        x, y = (device.alloc(512) for _ in range(2))
        expected = np.zeros(100, np.float32)
        for _ in range(3):
            steps.run(struct.pack("2P", x.address, y.address))
            expected = np.exp(expected) + expected
        device.copy_out(y)
        np.testing.assert_allclose(y.array[:400].view(np.float32), expected, rtol=1e-5)
    assert len(gpu.gpu.launched) == 6
    assert sum(graph is not None for graph in steps._graphs.values()) == 2


@pytest.mark.skipif(
    not os.environ.get("CI") and importlib.util.find_spec("pyopencl") is None,
    reason="there is no OpenCL: pip install pyopencl pocl-binary-distribution",
)
def test_a_model_on_opencl() -> None:
    model = al.compile(al.from_onnx(proto(), target="opencl"))
    for x in (X, 2 * X):
        np.testing.assert_allclose(model(x=x)["y"], meaning(x), rtol=1e-5)
    assert all(spent > 0 for spent in model.timed({"x": X})[1])


def test_channels_are_not_blocked_for_gpus() -> None:
    """Their threads take elements that are neighbours in memory as it is."""
    w = numpy_helper.from_array(RNG.standard_normal((16, 16, 3, 3)).astype(np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Conv", ["a", "w"], ["y"])]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", (1, 16, 9, 9)), ("y", (1, 16, 5, 5)))
    )
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], [w]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    )
    ranks = {name: {len(v.shape) for v in al.from_onnx(model, target=name).graph.values.values()} for name in ("llvm", "h100")}
    assert max(ranks["h100"]) == 4 < max(ranks["llvm"])
