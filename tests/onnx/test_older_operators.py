"""Forms of operators since opset 7, which ONNX's node tests do not have any more: they give what the newest ones do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ansorlite.frontends.onnx import load_model
from ansorlite.graph.model import Model
from tests.onnx.support import run

X = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype(np.float32)

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

SCALES = np.array([1, 1, 2, 1.5], np.float32)
ASYMMETRIC = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
PADS = [0, 1, 0, 0, 0, 0, 2, -1]

#: Operator, opset, attributes and constant inputs; what is the same in the newest opset.
CASES: list[tuple[str, int, Mapping[str, Any], Mapping[str, Any], str, Mapping[str, Any], Mapping[str, Any]]] = [
    *(
        (f"Reduce{name}", opset, {"axes": [1, -1], "keepdims": 0}, {}, f"Reduce{name}", {"keepdims": 0}, {"axes": [1, 3]})
        for name in _REDUCTIONS
        for opset in ((11,) if name == "Sum" else (11, 13))
    ),
    *((f"Reduce{name}", 7, {"axes": [2]}, {}, f"Reduce{name}", {}, {"axes": [2]}) for name in _REDUCTIONS),
    ("Clip", 7, {"min": -0.5, "max": 0.25}, {}, "Clip", {}, {"low": np.float32(-0.5), "high": np.float32(0.25)}),
    ("Clip", 7, {"max": 0.25}, {}, "Clip", {}, {"": None, "high": np.float32(0.25)}),
    ("Pad", 7, {"pads": PADS, "value": 2.0}, {}, "Pad", {}, {"p": PADS, "v": np.float32(2)}),
    ("Pad", 10, {"pads": [0, 0, 1, 1] * 2, "mode": "reflect"}, {}, "Pad", {"mode": "reflect"}, {"p": [0, 0, 1, 1] * 2}),
    ("Slice", 9, {"starts": [1, -3], "ends": [99, -1], "axes": [1, 3]}, {}, "Slice", {},
     {"s": [1, -3], "e": [99, -1], "a": [1, 3]}),
    ("Slice", 10, {}, {"s": [1], "e": [3], "a": [-1]}, "Slice", {}, {"s": [1], "e": [3], "a": [3]}),
    ("Unsqueeze", 11, {"axes": [0, 3]}, {}, "Unsqueeze", {}, {"axes": [0, 3]}),
    ("Resize", 10, {}, {"s": SCALES}, "Resize",
     ASYMMETRIC, {"": None, "s": SCALES}),
    ("Resize", 11, {"mode": "linear"}, {"roi": np.zeros(0, np.float32), "s": SCALES}, "Resize",
     {"mode": "linear"}, {"": None, "s": SCALES}),
    ("Upsample", 9, {}, {"s": SCALES}, "Resize",
     ASYMMETRIC, {"": None, "s": SCALES}),
    ("Scatter", 9, {"axis": 3}, {"i": [[[[2]]]], "u": np.full((1, 1, 1, 1), 9, np.float32)}, "ScatterElements",
     {"axis": 3}, {"i": [[[[2]]]], "u": np.full((1, 1, 1, 1), 9, np.float32)}),
    ("Dropout", 7, {"ratio": 0.7}, {}, "Identity", {}, {}),
    ("Dropout", 10, {"ratio": 0.7}, {}, "Identity", {}, {}),
    ("BatchNormalization", 7, {}, {n: np.array([1, 2, 3], np.float32) for n in "sbmv"}, "BatchNormalization",
     {}, {n: np.array([1, 2, 3], np.float32) for n in "sbmv"}),
    ("Cast", 7, {"to": 7}, {}, "Cast", {"to": 7}, {}),
    ("Softmax", 11, {"axis": 3}, {}, "Softmax", {"axis": 3}, {}),
    ("LogSoftmax", 7, {"axis": 3}, {}, "LogSoftmax", {"axis": 3}, {}),
    ("Flatten", 7, {"axis": 2}, {}, "Flatten", {"axis": 2}, {}),
    ("DepthToSpace", 7, {"blocksize": 1}, {}, "DepthToSpace", {"blocksize": 1}, {}),
    ("GlobalLpPool", 7, {"p": 3}, {}, "LpPool", {"p": 3, "kernel_shape": [4, 6]}, {}),
    ("MeanVarianceNormalization", 9, {"axes": [0, 2]}, {}, "MeanVarianceNormalization", {"axes": [0, 2]}, {}),
    ("ArgMax", 11, {"axis": -1}, {}, "ArgMax", {"axis": 3}, {}),
]  # fmt: skip


def _result(operator: str, opset: int, attributes: Mapping[str, Any], constants: Mapping[str, Any]) -> tuple[np.ndarray, bool]:
    """Of one node on ``X``; and whether it was native."""
    names = list(constants)
    node = helper.make_node(operator, ["x", *names], ["y"], **attributes)
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if name]
    kind = {"Cast": onnx.TensorProto.INT64, "ArgMax": onnx.TensorProto.INT64}.get(operator, onnx.TensorProto.FLOAT)
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, X.shape)]
    graph = helper.make_graph([node], "old", inputs, [helper.make_tensor_value_info("y", kind, None)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return run(model, {"x": X})["y"], isinstance(load_model(model), Model)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_they_give_what_the_newer_ones_do(case: tuple[Any, ...]) -> None:
    operator, opset, attributes, constants, newer, newer_attributes, newer_constants = case
    found, native = _result(operator, opset, attributes, constants)
    expected, _ = _result(newer, 22, newer_attributes, newer_constants)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert native


@pytest.mark.parametrize("opset", [7, 9, 11])
@pytest.mark.parametrize("parts", [None, [1, 5]])
def test_split(opset: int, parts: list[int] | None) -> None:
    node = helper.make_node("Split", ["x"], ["y", "z"], axis=3, **({} if parts is None else {"split": parts}))
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "yz"]
    graph = helper.make_graph([node], "old", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, X.shape)], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    for name, expected in zip("yz", np.split(X, [parts[0] if parts else 3], axis=3), strict=True):
        np.testing.assert_array_equal(run(model, {"x": X})[name], expected)


@pytest.mark.parametrize(("factor", "expected"), [(0.6, [1, 3]), (0.5, [1, 3]), (1.5, [1, 1, 2, 3, 3, 4])])
def test_the_nearest_element_before_opset_11(factor: float, expected: list[int]) -> None:
    """ONNX's test of opset 10, test_resize_downsample_nearest, takes 1 and 3 of 1, 2, 3, 4; onnxruntime does so too."""
    x = np.array([[1, 2, 3, 4]], np.float32)
    scales = np.array([1, factor], np.float32)
    node = helper.make_node("Resize", ["x", "s"], ["y"])
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(scales, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)])
    np.testing.assert_array_equal(run(model, {"x": x})["y"], [expected])
