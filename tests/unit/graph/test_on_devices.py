"""Whole models on devices: weights there, temporaries by the memory plan, kernels in a row; NVIDIA's by CuPy's stand-in."""

from __future__ import annotations

import importlib.util
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ansorlite as al
from ansorlite.codegen.entry import Address, Call, Move
from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.errors import ArgumentError, MemoryLimitError
from ansorlite.platforms import build
from ansorlite.runtime.cuda import Cuda
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.peaks import MemoryLevel, Peaks
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


@pytest.mark.usefixtures("gpu")
def test_a_model_on_a_gpu_is_exported_from_there(tmp_path: Path) -> None:
    """Its weights are read back. What such libraries do: ``tests/unit/export/on_driver.py``."""
    model = al.compile(al.from_onnx(proto(), target="cuda"))
    model.export(tmp_path / "model.so", weights="beside")
    assert (tmp_path / "model.weights").stat().st_size == model.weight_bytes
    assert any(np.frombuffer((tmp_path / "model.weights").read_bytes(), np.float32) == W1[0, 0])
    assert "int model_enqueue(" in (tmp_path / "model.h").read_text()


def on(gpu: StandIn, *arrays: np.ndarray) -> list[Any]:
    """Copies there, which are not waited for any more."""
    there = [gpu.asarray(array) for array in arrays]
    gpu.null[0].synchronize()
    return there


def test_arrays_on_the_gpu_are_read_and_made_there_and_nothing_is_waited_for(gpu: StandIn) -> None:
    model = al.compile(al.from_onnx(proto(), target="cuda"))
    model(X)
    (x,) = on(gpu, X)
    launched, used = len(gpu.gpu.launched), gpu.gpu.used
    y = model(x)["y"]
    assert isinstance(y, gpu.module.ndarray)
    assert len(gpu.gpu.launched) == launched, "nothing has run yet"
    assert gpu.gpu.used - used <= 512 * 2, "the output, and temporaries that are kept"
    np.testing.assert_allclose(y.get(), meaning(X), rtol=1e-5)
    out = gpu.empty((2, 3))
    assert model.run({"x": x}, {"y": out})["y"] is out
    np.testing.assert_array_equal(out.get(), y.get())
    # Numpy's beside one there are copied there.
    np.testing.assert_array_equal(model.run({"x": X}, {"y": out})["y"].get(), y.get())
    # What does not lie in a row, or begins anywhere, is copied, too.
    (wide,) = on(gpu, np.concatenate([np.zeros(1, np.float32), X.ravel()]))
    shifted = wide[1:]
    shifted.shape, shifted.strides = (2, 4), (16, 4)
    np.testing.assert_array_equal(model(shifted)["y"].get(), y.get())
    (across,) = on(gpu, np.ascontiguousarray(X.T))
    np.testing.assert_array_equal(model(across.T)["y"].get(), y.get())
    assert isinstance(model(X)["y"], np.ndarray), "numpy's in, numpy's out"
    outputs, nanoseconds = model.timed({"x": x})
    np.testing.assert_array_equal(outputs["y"].get(), y.get())
    assert len(nanoseconds) == model.steps


def test_a_model_runs_on_the_callers_stream(gpu: StandIn) -> None:
    model = al.compile(al.from_onnx(proto(), target="cuda"))
    (x,) = on(gpu, X)
    launched = len(gpu.gpu.launched)
    streams = [gpu.module.cuda.Stream() for _ in range(2)]
    results = []
    for stream in streams:
        with stream:
            results += [model(x)["y"], model(x)["y"]]
    gpu.null[0].synchronize()
    assert len(gpu.gpu.launched) == launched
    for stream in reversed(streams):
        stream.synchronize()
    assert len(gpu.gpu.launched) > launched
    for y in results:
        np.testing.assert_allclose(y.get(), meaning(X), rtol=1e-5)
    with device_of(resolve("cuda")).on_stream(streams[0].ptr):
        again = model(x)["y"]
        assert not gpu.null[0].waiting
        np.testing.assert_allclose(again.get(), meaning(X), rtol=1e-5)


def test_a_model_in_a_graph_of_the_callers(gpu: StandIn) -> None:
    model = al.compile(al.from_onnx(proto(), target="cuda"))
    (x,), out = on(gpu, X), gpu.empty((2, 3))
    stream = gpu.module.cuda.Stream()
    with stream:
        model.run({"x": x}, {"y": out})
        stream.begin_capture()
        with pytest.raises(ArgumentError, match="is captured, and this cannot be a part of a graph"):
            model(x)
        model.run({"x": x}, {"y": out})
        graph = stream.end_capture()
    stream.synchronize()
    (other,) = on(gpu, 2 * X)
    for given, source in ((x, other), (x, x)):
        given[:] = source
        graph.launch(gpu.null[0])
        np.testing.assert_allclose(out.get(), meaning(source.get()), rtol=1e-5)


def test_what_a_model_on_a_gpu_refuses(gpu: StandIn) -> None:
    model = al.compile(al.from_onnx(proto(), target="cuda"))
    (x,) = on(gpu, X)
    for arrays, out, said in (
        ((x.T,), {}, r"input 'x' has shape \(4, 2\), but the model takes \(2, 4\)"),
        ((gpu.asarray(X.astype(np.int32)),), {}, "input 'x' is int32, not float32; convert it"),
        (
            (x,),
            {"y": np.empty((2, 3), np.float32)},
            "out for 'y' is on the host, and another array on the GPU; pass one from cupy",
        ),
        ((x,), {"y": gpu.empty((3, 2)).T}, "out for 'y' must be contiguous"),
        ((x,), {"z": x}, "output 'z' is unknown; the model's outputs are: y"),
    ):
        with pytest.raises(ArgumentError, match=said):
            model.run(dict(zip(("x",), arrays, strict=True)), out)
    (across,), out = on(gpu, np.ascontiguousarray(X.T)), gpu.empty((2, 3))
    used, total = gpu.gpu.used, gpu.gpu.total
    gpu.gpu.total = used
    with pytest.raises(MemoryLimitError, match=r"GPU 0 has no .* of memory left; free some"):
        model(x)
    with pytest.raises(MemoryLimitError, match="GPU 0 has no"):
        model(X)
    with pytest.raises(MemoryLimitError, match="GPU 0 has no"):
        al.compile(al.from_onnx(proto(), target="cuda"))
    with pytest.raises(MemoryLimitError, match="GPU 0 has no memory left for a copy; free some"):
        model.run({"x": across.T}, {"y": out})
    gpu.gpu.total = total
    np.testing.assert_allclose(model(x)["y"].get(), meaning(X), rtol=1e-5)


def test_a_model_on_another_gpu_refuses_arrays_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    device_of.cache_clear()
    with StandIn(gpus=2).installed() as both:
        model = al.compile(al.from_onnx(proto(), target="cuda:1"))
        x = both.asarray(X)
        with pytest.raises(ArgumentError, match=r"input 'x' is on GPU 0, and the program on GPU 1; .*'cuda:0'"):
            model(x)
        with both.module.cuda.Device(1):
            there = both.asarray(X)
        y = model(there)["y"]
        assert y.device.id == 1
        with both.module.cuda.Device(1):
            np.testing.assert_allclose(y.get(), meaning(X), rtol=1e-5)
    device_of.cache_clear()


def partly_in_python() -> onnx.ModelProto:
    """Products, the distinct elements of what they make, and as many of these as there are, doubled."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Unique", ["b"], ["u"]),
        helper.make_node("MatMul", ["b", "w2"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", (2, 4)), ("y", (2, 3))))
    u = helper.make_tensor_value_info("u", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph(nodes, "g", [x], [y, u], [numpy_helper.from_array(W1, "w1"), numpy_helper.from_array(W2, "w2")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_operators_in_python_cut_a_model(gpu: StandIn) -> None:
    model = al.compile(al.from_onnx(partly_in_python(), target="cuda"))
    expected = np.maximum(X @ W1, 0)
    (x,) = on(gpu, X)
    for given in (X, x, x):
        found = model(given)
        arrays = {name: datum if given is X else datum.get() for name, datum in found.items()}
        np.testing.assert_allclose(arrays["y"], expected @ W2, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(arrays["u"], np.unique(expected), rtol=1e-4, atol=1e-6)
    profile = model.profile({"x": x}, runs=1, peaks=Peaks(1, 1e12, (MemoryLevel("memory", 1 << 30, 1e11, 1e11),)))
    assert any("Unique" in step.facts.name for step in profile.steps)


def test_a_model_of_any_size(gpu: StandIn) -> None:
    whole = proto()
    for value in (whole.graph.input[0], whole.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    model = al.compile(al.from_onnx(whole, target="cuda", dims={"n": (1, 8)}))
    for rows in (2, 3, 5):
        x = RNG.standard_normal((rows, 4)).astype(np.float32)
        np.testing.assert_allclose(model(x)["y"], meaning(x), rtol=1e-5)
        y = model(*on(gpu, x))["y"]
        assert y.shape == (rows, 3)
        np.testing.assert_allclose(y.get(), meaning(x), rtol=1e-5)
    with pytest.raises(ArgumentError, match="input 'x' is int32; convert it"):
        model(*on(gpu, np.ones((2, 4), np.int32)))


def normalised_columns() -> onnx.ModelProto:
    """Along what is open, so that programs are given how much there is of it."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in "xy"]
    nodes = [helper.make_node("Softmax", ["x"], ["y"], axis=0)]
    graph = helper.make_graph(nodes, "columns", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def columns(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(0))
    return powers / powers.sum(0)


def test_a_model_that_is_given_its_size(gpu: StandIn) -> None:
    model = al.compile(al.from_onnx(normalised_columns(), target="cuda", dims={"n": (8,)}))
    for rows in (2, 3, 5):
        x = RNG.standard_normal((rows, 16)).astype(np.float32)
        np.testing.assert_allclose(model(x)["y"], columns(x), rtol=1e-5)
        np.testing.assert_allclose(model(*on(gpu, x))["y"].get(), columns(x), rtol=1e-5)
    assert model.programs == 1


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
    assert sum(graph is not None for graph in steps._whole.graphs.values()) == 2


@pytest.mark.usefixtures("gpu")
def test_of_arrays_that_move_the_steps_between_are_a_graph() -> None:
    """x is copied in, a row of steps is done on what stays, and y copied out: only the first and the last know x and y."""
    target = resolve("cuda")
    device = device_of(target)
    assert isinstance(device, Cuda)
    program = SMALL["element_wise"]
    loaded = device.load(build(program.function, target))
    a, b = Address(0, 0), Address(0, 512)
    inner = [Call("k", (a, a, b, a)), Move(b, a, 400)] * 2
    steps = device.link([Move(Address(1, 0), a, 400), *inner, Move(a, Address(2, 0), 400)], {"k": loaded})
    stays = device.alloc(1024)
    kept = []
    for turn in range(8):
        x = np.random.default_rng(turn).random(100, dtype=np.float32)
        given, result = device.alloc(400), device.alloc(400)
        given.array = x
        device.copy_in(given)
        kept += [given, result]
        steps.run(struct.pack("3P", stays.address, given.address, result.address))
        device.copy_out(result)
        for _ in range(2):
            x = np.exp(x) + x
        np.testing.assert_allclose(result.array.view(np.float32), x, rtol=1e-5)
    assert [len(row.steps) for row in steps._rows] == [1, 4, 1]
    assert [graph is not None for graph in steps._rows[1].graphs.values()] == [True]
    assert not any(steps._whole.graphs.values()), "none of them was ever used twice"
    assert not any(row.graphs for row in (steps._rows[0], steps._rows[2]))


@pytest.mark.skipif(
    not os.environ.get("CI") and importlib.util.find_spec("pyopencl") is None,
    reason="there is no OpenCL: pip install pyopencl pocl-binary-distribution",
)
def test_a_model_on_opencl() -> None:
    served = al.compile(al.from_onnx(normalised_columns(), target="opencl", dims={"n": (8,)}))
    for rows in (3, 5):
        x = RNG.standard_normal((rows, 16)).astype(np.float32)
        np.testing.assert_allclose(served(x)["y"], columns(x), rtol=1e-5)
    assert served.programs == 1
    model = al.compile(al.from_onnx(proto(), target="opencl"))
    for x in (X, 2 * X):
        np.testing.assert_allclose(model(x=x)["y"], meaning(x), rtol=1e-5)
    assert all(spent > 0 for spent in model.timed({"x": X})[1])
    with pytest.raises(
        ArgumentError, match="models for opencl are not exported; compile it for a CPU, target='llvm', or for CUDA"
    ):
        model.export("model.so")


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
