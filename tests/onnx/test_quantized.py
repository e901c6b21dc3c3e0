"""Models between QuantizeLinear and DequantizeLinear, as quantisers write them, run on integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator

from ansorlite.frontends.onnx import load_model
from ansorlite.graph.model import Model
from ansorlite.topi.conv import conv
from ansorlite.topi.matmul import gemm, matmul
from ansorlite.topi.pooling import average_pool
from ansorlite.topi.quantized import (
    dequantize,
    integer_conv,
    integer_matmul,
    integer_sum,
    integer_window_sum,
    quantize,
    requantize_real,
    saturate,
)
from ansorlite.topi.reduction import reduce_mean
from tests.onnx.support import make_model, run

Array = np.ndarray

#: What weights do not exceed: with larger ones, onnxruntime's sums are wrong on processors without dot products of bytes.
_SMALL = 64


@dataclass(frozen=True)
class Quantized:
    """A node between dequantised inputs and a quantised result.

    Attributes:
        node: reads ``x``, and ``y`` or ``w`` and ``b``; gives ``r``.
        inputs: bytes that the model is given: ``x``, ``y``.
        constants: ``w`` in bytes, ``b`` in int32.
        scales, zeros: of ``x``, ``y``, ``w``, ``b`` and ``out``; those that are missing are 0.
    """

    node: onnx.NodeProto
    inputs: Mapping[str, Array]
    constants: Mapping[str, Array]
    scales: Mapping[str, Array]
    zeros: Mapping[str, Array]
    activation: Sequence[onnx.NodeProto] = ()
    axes: Mapping[str, int] | None = None

    def qdq(self) -> onnx.ModelProto:
        nodes = []
        for name in (*self.inputs, *self.constants):
            parts = [name, f"{name}_scale", *([f"{name}_zero"] if name in self.zeros else [])]
            nodes.append(make_node("DequantizeLinear", parts, [f"{name}_real"], axis=(self.axes or {}).get(name, 0)))
        main = onnx.NodeProto()
        main.CopyFrom(self.node)
        main.input[:] = [f"{name}_real" for name in self.node.input]
        result = self.activation[-1].output[0] if self.activation else self.node.output[0]
        last = make_node("QuantizeLinear", [result, "out_scale", "out_zero"], ["out"])
        constants = dict(self.constants)
        constants |= {f"{name}_scale": scale for name, scale in self.scales.items()}
        constants |= {f"{name}_zero": zero for name, zero in self.zeros.items()}
        return model_of([*nodes, main, *self.activation, last], self.inputs, constants, self.zeros["out"])


def model_of(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Array], constants: Mapping[str, Array], like: Array
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info("out", helper.np_dtype_to_tensor_dtype(like.dtype), None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def _bytes(rng: np.random.Generator, dtype: str, *shape: int, most: int | None = None) -> Array:
    low, high = (-most, most) if most is not None else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return rng.integers(low, high + 1, shape).astype(dtype)


def _convolution(
    *,
    dtype: str = "uint8",
    by_channel: bool = False,
    bias: bool = True,
    groups: int = 1,
    activation: Sequence[onnx.NodeProto] = (),
    weight: str = "int8",
    zero: int = 0,
) -> Quantized:
    rng = np.random.default_rng(0)
    scale = rng.uniform(0.002, 0.01, 8).astype("float32") if by_channel else np.float32(0.004)
    x_scale = np.float32(0.031)
    constants = {"w": _bytes(rng, weight, 8, 8 // groups, 3, 3, most=_SMALL if weight == "int8" else None)}
    scales = {"x": np.asarray(x_scale), "w": np.asarray(scale), "out": np.asarray(np.float32(0.11))}
    zeros = {"x": np.asarray(3, dtype), "out": np.asarray(5, dtype), "w": np.full(np.shape(scale), zero, weight)}
    if bias:
        constants["b"] = rng.integers(-9000, 9000, 8).astype("int32")
        scales["b"] = np.asarray(x_scale * scale)
    node = make_node("Conv", ["x", "w", "b"] if bias else ["x", "w"], ["r"], pads=[1, 1, 1, 1], strides=[2, 2], group=groups)
    return Quantized(node, {"x": _bytes(rng, dtype, 2, 8, 9, 9)}, constants, scales, zeros, activation)


def _product(*, dtype: str = "uint8", by_column: bool = False, constant: bool = True) -> Quantized:
    rng = np.random.default_rng(1)
    scale = rng.uniform(0.002, 0.01, 12).astype("float32") if by_column else np.float32(0.004)
    b = _bytes(rng, "int8", 24, 12, most=_SMALL)
    scales = {"x": np.asarray(np.float32(0.02)), "w": np.asarray(scale), "out": np.asarray(np.float32(0.05))}
    zeros = {"x": np.asarray(7, dtype), "out": np.asarray(1, dtype)}
    inputs = {"x": _bytes(rng, dtype, 2, 5, 24)}
    given, fixed = (inputs, {"w": b}) if constant else (inputs | {"w": b}, {})
    return Quantized(make_node("MatMul", ["x", "w"], ["r"]), given, fixed, scales, zeros, axes={"w": 1})


def _gemm(transposed: bool) -> Quantized:
    rng = np.random.default_rng(2)
    shape = (6, 20) if transposed else (20, 6)
    constants = {"w": _bytes(rng, "int8", *shape, most=_SMALL), "b": rng.integers(-5000, 5000, 6).astype("int32")}
    scales = {"x": np.float32(0.02), "w": np.float32(0.01), "out": np.float32(0.1)}
    scales["b"] = scales["x"] * scales["w"]
    zeros = {"x": np.asarray(120, "uint8"), "out": np.asarray(128, "uint8")}
    node = make_node("Gemm", ["x", "w", "b"], ["r"], transB=int(transposed))
    return Quantized(node, {"x": _bytes(rng, "uint8", 4, 20)}, constants, {n: np.asarray(s) for n, s in scales.items()}, zeros)


def _unary(node: onnx.NodeProto, scale: float = 0.04) -> Quantized:
    rng = np.random.default_rng(3)
    scales = {"x": np.asarray(np.float32(0.04)), "out": np.asarray(np.float32(scale))}
    zeros = {"x": np.asarray(9, "uint8"), "out": np.asarray(9, "uint8")}
    return Quantized(node, {"x": _bytes(rng, "uint8", 2, 4, 8, 8)}, {}, scales, zeros)


def _binary(node: onnx.NodeProto, out: float) -> Quantized:
    rng = np.random.default_rng(4)
    scales = {"x": np.asarray(np.float32(0.04)), "y": np.asarray(np.float32(0.07)), "out": np.asarray(np.float32(out))}
    zeros = {"x": np.asarray(9, "uint8"), "y": np.asarray(130, "uint8"), "out": np.asarray(100, "uint8")}
    return Quantized(node, {name: _bytes(rng, "uint8", 2, 4, 8, 8) for name in "xy"}, {}, scales, zeros)


_RELU = [make_node("Relu", ["r"], ["q"])]
_CLIP = [make_node("Clip", ["r", "low", "high"], ["q"])]
#: name → (model, operators that it has no more, operators that it has instead).
CASES: dict[str, tuple[Callable[[], Quantized], set[object], set[object]]] = {
    "conv": (_convolution, {conv, dequantize, quantize}, {integer_conv}),
    "conv, signed": (lambda: _convolution(dtype="int8"), {conv, dequantize, quantize}, {integer_conv}),
    "conv by channel": (lambda: _convolution(by_channel=True), {conv, dequantize, quantize}, {integer_conv}),
    "conv without bias": (lambda: _convolution(bias=False), {conv, dequantize, quantize}, {integer_conv}),
    "conv in groups": (lambda: _convolution(groups=2), {conv, dequantize, quantize}, {integer_conv}),
    "depthwise conv": (lambda: _convolution(groups=8), {conv, dequantize, quantize}, {integer_conv}),
    "conv, relu": (lambda: _convolution(activation=_RELU), {conv, dequantize, quantize}, {integer_conv}),
    "conv, unsigned weight": (lambda: _convolution(weight="uint8", zero=131), {conv, dequantize, quantize}, {integer_conv}),
    "matmul": (_product, {matmul, dequantize, quantize}, {integer_matmul}),
    "matmul by column": (lambda: _product(by_column=True), {matmul, dequantize, quantize}, {integer_matmul}),
    "matmul of values": (lambda: _product(constant=False), {matmul, dequantize, quantize}, {integer_matmul}),
    "matmul, signed": (lambda: _product(dtype="int8"), {matmul, dequantize, quantize}, {integer_matmul}),
    "gemm": (lambda: _gemm(False), {gemm, dequantize, quantize}, {integer_matmul}),
    "gemm, transposed": (lambda: _gemm(True), {gemm, dequantize, quantize}, {integer_matmul}),
    "max pool": (
        lambda: _unary(make_node("MaxPool", ["x"], ["r"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
        {dequantize, quantize},
        set(),
    ),
    "average pool": (
        lambda: _unary(make_node("AveragePool", ["x"], ["r"], kernel_shape=[3, 3], strides=[2, 2]), 0.03),
        {average_pool, dequantize, quantize},
        {integer_window_sum},
    ),
    "average pool, border counts": (
        lambda: _unary(make_node("AveragePool", ["x"], ["r"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1), 0.03),
        {average_pool, dequantize, quantize},
        {integer_window_sum},
    ),
    "average pool, border does not count": (
        lambda: _unary(make_node("AveragePool", ["x"], ["r"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 0.03),
        {integer_window_sum},
        {average_pool},
    ),
    "global average pool": (
        lambda: _unary(make_node("GlobalAveragePool", ["x"], ["r"]), 0.01),
        {reduce_mean, dequantize, quantize},
        {integer_sum},
    ),
    "transpose": (lambda: _unary(make_node("Transpose", ["x"], ["r"], perm=[0, 2, 3, 1])), {dequantize, quantize}, set()),
    "flatten": (lambda: _unary(make_node("Flatten", ["x"], ["r"])), {dequantize, quantize}, set()),
    "relu alone": (lambda: _unary(make_node("Relu", ["x"], ["r"])), {dequantize, quantize}, set()),
    "add": (lambda: _binary(make_node("Add", ["x", "y"], ["r"]), 0.09), {quantize}, {saturate}),
    "concat": (lambda: _binary(make_node("Concat", ["x", "y"], ["r"], axis=1), 0.07), set(), set()),
}


def _operators(model: onnx.ModelProto) -> set[object]:
    loaded = load_model(model, shapes={}, target="llvm")
    assert isinstance(loaded, Model)
    return {node.operator for node in loaded.graph.nodes}


def within_a_quantum(ours: Array, expected: Array, inexact: float = 0.02) -> None:
    """Equal but for what lay in the middle between two integers: few elements, by 1."""
    difference = np.abs(ours.astype(np.int32) - expected.astype(np.int32))
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    assert difference.max() <= 1
    assert (difference > 0).mean() <= inexact


@pytest.mark.parametrize("name", CASES)
def test_integers_take_the_place_of_floats(name: str) -> None:
    make, gone, present = CASES[name]
    case = make()
    model = case.qdq()
    operators = _operators(model)
    assert not operators & gone
    assert present <= operators
    ours = run(model, case.inputs)["out"]
    (reference,) = ReferenceEvaluator(model).run(None, dict(case.inputs))
    within_a_quantum(ours, np.asarray(reference))


@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_convolutions_of_both_forms_are_equal(by_channel: bool, dtype: str) -> None:
    case = _convolution(by_channel=by_channel, dtype=dtype)
    names = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "out_scale", "out_zero", "b"]
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in case.node.attribute}
    constants = dict(case.constants)
    constants |= {f"{name}_scale": scale for name, scale in case.scales.items()}
    constants |= {f"{name}_zero": zero for name, zero in case.zeros.items()}
    whole = model_of([make_node("QLinearConv", names, ["out"], **attributes)], case.inputs, constants, case.zeros["out"])
    ours, expected = (load_model(model, shapes={}, target="llvm") for model in (case.qdq(), whole))
    assert isinstance(ours, Model)
    assert isinstance(expected, Model)
    assert [task.key for task, _ in ours.tasks] == [task.key for task, _ in expected.tasks]
    np.testing.assert_array_equal(run(case.qdq(), case.inputs)["out"], run(whole, case.inputs)["out"])


def test_products_of_both_forms_are_equal() -> None:
    case = _product()
    names = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "out_scale", "out_zero"]
    constants = dict(case.constants) | {f"{name}_scale": scale for name, scale in case.scales.items()}
    constants |= {f"{name}_zero": zero for name, zero in case.zeros.items()} | {"w_zero": np.asarray(0, "int8")}
    whole = model_of([make_node("QLinearMatMul", names, ["out"])], case.inputs, constants, case.zeros["out"])
    np.testing.assert_array_equal(run(case.qdq(), case.inputs)["out"], run(whole, case.inputs)["out"])


def test_a_bias_of_another_scale_is_added_to_floats() -> None:
    case = _convolution()
    other = Quantized(case.node, case.inputs, case.constants, {**case.scales, "b": case.scales["b"] * 2}, case.zeros)
    assert {integer_conv, dequantize, quantize} <= _operators(other.qdq())
    (reference,) = ReferenceEvaluator(other.qdq()).run(None, dict(case.inputs))
    within_a_quantum(run(other.qdq(), case.inputs)["out"], np.asarray(reference))


def test_sums_that_may_leave_int32_stay_floats() -> None:
    rng = np.random.default_rng(5)
    constants = {"w": np.full((70_000, 2), -128, "int8")}
    scales = {"x": np.asarray(np.float32(0.01)), "w": np.asarray(np.float32(0.01)), "out": np.asarray(np.float32(1000))}
    zeros = {"x": np.asarray(0, "uint8"), "out": np.asarray(250, "uint8")}
    case = Quantized(make_node("MatMul", ["x", "w"], ["r"]), {"x": _bytes(rng, "uint8", 1, 70_000)}, constants, scales, zeros)
    assert integer_matmul not in _operators(case.qdq())


@pytest.mark.parametrize("limits", [(0.0, 6.0), (-1.5, 2.25)])
def test_limits_are_quantised_limits(limits: tuple[float, float]) -> None:
    case = _convolution(activation=_CLIP)
    model = case.qdq()
    for name, limit in zip(("low", "high"), limits, strict=True):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(limit, "float32"), name))
    assert not _operators(model) & {conv, dequantize, quantize}
    (reference,) = ReferenceEvaluator(model).run(None, dict(case.inputs))
    within_a_quantum(run(model, case.inputs)["out"], np.asarray(reference))


def _residual() -> onnx.ModelProto:
    """Two convolutions of one input, whose quantised results are added, and quantised."""
    constants: dict[str, Array] = {"z": np.asarray(7, "uint8"), "zw": np.asarray(0, "int8")}
    rng = np.random.default_rng(7)
    for name, scale in {"x": 0.03, "w": 0.004, "u": 0.02, "c": 0.11, "d": 0.13, "out": 0.19}.items():
        constants[f"{name}_scale"] = np.asarray(scale, "float32")
    nodes = [make_node("DequantizeLinear", ["x", "x_scale", "z"], ["x_real"])]
    for weight, result in (("w", "c"), ("u", "d")):
        constants[weight] = _bytes(rng, "int8", 8, 8, 3, 3, most=_SMALL)
        nodes += [
            make_node("DequantizeLinear", [weight, f"{weight}_scale", "zw"], [f"{weight}_real"]),
            make_node("Conv", ["x_real", f"{weight}_real"], [result], pads=[1, 1, 1, 1]),
            make_node("QuantizeLinear", [result, f"{result}_scale", "z"], [f"{result}_bytes"]),
            make_node("DequantizeLinear", [f"{result}_bytes", f"{result}_scale", "z"], [f"{result}_real"]),
        ]
    nodes += [make_node("Add", ["c_real", "d_real"], ["s"]), make_node("QuantizeLinear", ["s", "out_scale", "z"], ["out"])]
    return model_of(nodes, {"x": np.zeros((1, 8, 9, 9), "uint8")}, constants, constants["z"])


def test_residual_sums_store_bytes_and_no_floats() -> None:
    model = load_model(_residual(), shapes={}, target="llvm")
    assert isinstance(model, Model)
    assert {model.graph.values[group.output].dtype for group in model.groups} == {"uint8"}
    assert requantize_real in {node.operator for node in model.graph.nodes}
    x = _bytes(np.random.default_rng(8), "uint8", 1, 8, 9, 9)
    (reference,) = ReferenceEvaluator(_residual()).run(None, {"x": x})
    within_a_quantum(run(_residual(), {"x": x})["out"], np.asarray(reference))


@pytest.mark.parametrize("weight_zero", [None, np.int8(3), np.array([1, -2, 0, 5], np.int8)], ids=["none", "one", "channels"])
@pytest.mark.parametrize(
    "window",
    [
        {},
        {"pads": [1, 2, 0, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 1]},
        {"pads": [2, 2, 2, 2], "dilations": [2, 2], "group": 2},
    ],
)
def test_a_zero_point_that_is_data(window: dict, weight_zero: Array | None) -> None:
    """As dynamically quantised models have them."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (2, 4, 6, 5), np.uint8)
    w = rng.integers(-60, 60, (4, 4 // window.get("group", 1), 3, 2), np.int8)
    own = [] if weight_zero is None else ["w_zero"]
    node = make_node("ConvInteger", ["x", "w", "zero", *own], ["y"], **window)
    constants = {"w": w} | ({} if weight_zero is None else {"w_zero": np.asarray(weight_zero)})
    for zero in (0, 131):
        inputs = {"x": x, "zero": np.asarray(zero, np.uint8)}
        model = make_model([node], inputs, ["y"], constants)
        assert isinstance(load_model(model), Model)
        shift = 0 if weight_zero is None else weight_zero.reshape(-1, *[1] * (3 * weight_zero.ndim)).astype(np.float64)
        real = {"x": x.astype(np.float64) - zero, "w": w.astype(np.float64) - shift}
        conv_node = make_node("Conv", ["x", "w"], ["y"], **window)
        expected = ReferenceEvaluator(make_model([conv_node], real, ["y"])).run(None, real)[0]
        found = run(model, inputs)["y"]
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, expected)
