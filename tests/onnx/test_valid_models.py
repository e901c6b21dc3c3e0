"""Models that are valid by ONNX's rules, and rare: older forms of operators, dtypes that few use, results without elements."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.graph.model import Model
from tests.onnx.support import run

RNG = np.random.default_rng(0)
X = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)


def _model(
    node: onnx.NodeProto,
    inputs: dict[str, np.ndarray],
    opset: int,
    constants: dict[str, np.ndarray] | None = None,
    kind: Any = None,
) -> onnx.ModelProto:
    """One node; its result is of the dtype of the first input, or of ``kind``, and states no shape."""

    def value(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    first = next(iter(inputs.values())).dtype
    result = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(kind or first)), None)
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph([node], "one", [value(n, a) for n, a in inputs.items()], [result], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(1.0, 1.0, 2.0, 3.0), (1.0, 1.0, 1.5, 1.0)])
def test_upsample_with_its_scales_as_an_attribute(mode: str, scales: tuple[float, ...]) -> None:
    old = _model(helper.make_node("Upsample", ["x"], ["y"], mode=mode, scales=scales), {"x": X}, 7)
    new = _model(helper.make_node("Upsample", ["x", "s"], ["y"], mode=mode), {"x": X}, 9, {"s": np.array(scales, np.float32)})
    assert isinstance(load_model(old), Model)
    result = run(old, {"x": X})["y"]
    assert result.shape == tuple(int(e * s) for e, s in zip(X.shape, scales, strict=True))
    np.testing.assert_array_equal(result, run(new, {"x": X})["y"])
    if mode == "nearest":
        rows, columns = (np.arange(e * s).astype(float) // s for e, s in zip((3, 4), scales[2:], strict=True))
        np.testing.assert_array_equal(result[0, 0], X[0, 0][np.ix_(rows[: result.shape[2]].astype(int), columns.astype(int))])


@pytest.mark.parametrize(
    ("mode", "scales"), [("cubical", (1.0, 1.0, 2.0, 2.0)), ("nearest", (2.0, 2.0)), ("nearest", (1.0, 1.0, float("nan"), 1.0))]
)
def test_upsample_with_attributes_that_mean_nothing(mode: str, scales: tuple[float, ...]) -> None:
    with pytest.raises(ModelError, match=r"node 'y' \(Upsample\): (mode|scales)"):
        load_model(_model(helper.make_node("Upsample", ["x"], ["y"], mode=mode, scales=scales), {"x": X}, 7))


def test_pad_of_truth_values() -> None:
    x = np.array([[True, False]])
    node = helper.make_node("Pad", ["x", "p", "v"], ["y"])
    for value in (True, False):
        model = _model(node, {"x": x}, 13, {"p": np.array([0, 1, 1, 0]), "v": np.asarray(value)})
        np.testing.assert_array_equal(run(model, {"x": x})["y"], np.pad(x, ((0, 1), (1, 0)), constant_values=value))
    default = _model(helper.make_node("Pad", ["x", "p"], ["y"]), {"x": x}, 13, {"p": np.array([0, 1, 1, 0])})
    np.testing.assert_array_equal(run(default, {"x": x})["y"], np.pad(x, ((0, 1), (1, 0))))
    crop = _model(helper.make_node("CenterCropPad", ["x", "s"], ["y"]), {"x": x}, 18, {"s": np.array([3, 2])})
    np.testing.assert_array_equal(run(crop, {"x": x})["y"], [[False] * 2, [True, False], [False] * 2])


def test_pads_that_leave_nothing() -> None:
    node = helper.make_node("Pad", ["x", "p"], ["y"])
    model = _model(node, {"x": X}, 13, {"p": np.array([0, 0, -1, 0, 0, 0, -2, 1])})
    assert run(model, {"x": X})["y"].shape == (1, 1, 0, 5)
    with pytest.raises(ModelError, match=r"node 'y' \(Pad\)"):
        load_model(_model(node, {"x": X}, 13, {"p": np.array([0, 0, -2, 0, 0, 0, -2, 1])}))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_log_sum_exp_of_integers(dtype: type) -> None:
    x = np.array([[0, 1, 5, 5], [100, 3, 100, 7]], dtype)
    model = _model(helper.make_node("ReduceLogSumExp", ["x"], ["y"], axes=[1], keepdims=0), {"x": x}, 13)
    result = run(model, {"x": x})["y"]
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, [5, 100])


def test_log_sum_exp_of_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 0], [-np.inf, 1]], np.float32)
    model = _model(helper.make_node("ReduceLogSumExp", ["x"], ["y"], axes=[1], keepdims=0), {"x": x}, 13)
    np.testing.assert_array_equal(run(model, {"x": x})["y"], [-np.inf, np.inf, 1])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("opset", [7, 11])
def test_hardmax_over_several_dimensions(axis: int, opset: int) -> None:
    """Before opset 13 over all from the axis on."""
    if opset == 7 and axis < 0:
        return
    x = RNG.permutation(24).astype(np.float32).reshape(2, 3, 4)
    model = _model(helper.make_node("Hardmax", ["x"], ["y"], axis=axis), {"x": x}, opset)
    assert isinstance(load_model(model), Model)
    rows = x.reshape(int(np.prod(x.shape[: axis % 3])), -1)
    np.testing.assert_array_equal(run(model, {"x": x})["y"].reshape(rows.shape), rows == rows.max(axis=1, keepdims=True))


# Dtypes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_a_batch_normalisation_whose_parameters_are_of_another_dtype(dtype: type) -> None:
    x = RNG.standard_normal((2, 3, 4)).astype(dtype)
    parameters = {n: np.ones(3, np.float32) for n in "sbmv"}
    node = helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y"])
    result = run(_model(node, {"x": x}, 15, parameters), {"x": x})["y"]
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float64), x.astype(np.float64), atol=1e-2)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint64, np.int8, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("reduction", ["min", "max"])
def test_the_least_and_the_largest_of_what_is_scattered(dtype: type, reduction: str) -> None:
    x, updates = np.array([1, 0, 1]).astype(dtype), np.array([0, 1]).astype(dtype)
    indices = np.array([0, 1])
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction=reduction)
    result = run(_model(node, {"x": x}, 18, {"i": indices, "u": updates}), {"x": x})["y"]
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(int), [0, 0, 1] if reduction == "min" else [1, 1, 1])


@pytest.mark.parametrize("base", [np.float16, ml_dtypes.bfloat16, np.float32, np.int32])
@pytest.mark.parametrize("exponent", [np.int32, np.uint64, np.float32, np.float64])
def test_powers_whose_exponents_are_of_another_dtype(base: type, exponent: type) -> None:
    x, e = np.array([2, 3, 4]).astype(base), np.array([3, 2, 0], exponent)
    result = run(_model(helper.make_node("Pow", ["x", "e"], ["y"]), {"x": x, "e": e}, 15), {"x": x, "e": e})["y"]
    assert result.dtype == base
    np.testing.assert_array_equal(result.astype(int), [8, 9, 1])


def test_erf_of_integers() -> None:
    """The text says nothing of how they are rounded: as ONNX's own evaluation has it."""
    for dtype in (np.int8, np.int32, np.int64, np.uint8, np.uint64):
        x = np.arange(0 if np.iinfo(dtype).min == 0 else -8, 9).astype(dtype)
        model = _model(helper.make_node("Erf", ["x"], ["y"]), {"x": x}, 9)
        (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_array_equal(run(model, {"x": x})["y"], expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("dims", [1, 2])
def test_a_convolution_of_narrow_floats(dtype: type, dims: int) -> None:
    x, w = np.ones((1, 2, *(5,) * dims)).astype(dtype), np.ones((3, 2, *(3,) * dims)).astype(dtype)
    model = _model(helper.make_node("Conv", ["x", "w", "b"], ["y"]), {"x": x}, 22, {"w": w, "b": np.ones(3, dtype)})
    result = run(model, {"x": x})["y"]
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float32), 2 * 3**dims + 1)


@pytest.mark.parametrize(
    ("node", "others", "message"),
    [
        (
            helper.make_node("Conv", ["x", "w"], ["y"], name="first"),
            {"w": np.ones((1, 1, 2, 2), np.float32)},
            r"node 'first' \(Conv\): inputs 'x' and 'w' must be of one dtype, and are bfloat16 and float32",
        ),
        (
            helper.make_node("Add", ["x", "w"], ["y"]),
            {"w": np.ones(4)},
            r"node 'y' \(Add\): inputs 'x' and 'w' must be of one dtype, and are bfloat16 and float64",
        ),
        (
            helper.make_node("Where", ["c", "x", "w"], ["y"]),
            {"c": np.array(True), "w": np.ones(4, np.int32)},
            "inputs 'x' and 'w' must be of one dtype, and are bfloat16 and int32",
        ),
        (
            helper.make_node("Reshape", ["x", "s"], ["y"]),
            {"s": np.array([-1], np.int32)},
            "input 's' is int32, and must be int64",
        ),
        (
            helper.make_node("Gather", ["x", "i"], ["y"]),
            {"i": np.array([0.0], np.float32)},
            "input 'i' is float32, and must be int32 or int64",
        ),
    ],
)  # fmt: skip
def test_dtypes_that_do_not_go_together_are_said_of_their_node(
    node: onnx.NodeProto, others: dict[str, np.ndarray], message: str
) -> None:
    x = X.astype(ml_dtypes.bfloat16)
    with pytest.raises(ModelError, match=message):
        load_model(_model(node, {"x": x}, 22, others))


@pytest.mark.parametrize("opset", [11, 21])
def test_a_scan_over_values_of_several_dtypes(opset: int) -> None:
    """In an old opset too, where what its rows become is put together by operators of the newest form."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Cast", ["row"], ["r"], to=TensorProto.FLOAT), helper.make_node("Add", ["s", "r"], ["t"]),
         helper.make_node("Identity", ["row"], ["out"])],
        "body",
        [value("s", TensorProto.FLOAT, [2]), value("row", TensorProto.INT32, [2])],
        [value("t", TensorProto.FLOAT, [2]), value("out", TensorProto.INT32, [2])],
    )  # fmt: skip
    x = np.arange(6, dtype=np.int32).reshape(3, 2)
    node = helper.make_node("Scan", ["zero", "x"], ["", "y"], body=body, num_scan_inputs=1)
    np.testing.assert_array_equal(run(_model(node, {"x": x}, opset, {"zero": np.zeros(2, np.float32)}), {"x": x})["y"], x)


def test_an_output_that_is_declared_as_something_else() -> None:
    model = _model(helper.make_node("Neg", ["x"], ["y"], name="turn"), {"x": X}, 22, kind=np.float64)
    with pytest.raises(
        ModelError, match=r"output 'y' is declared as float64, but is float32 by the types of what it is computed from"
    ):
        load_model(model)


def test_a_type_that_the_operator_has_only_in_later_opsets() -> None:
    """Nobody minds: what it means is clear."""
    x = np.ones((1, 1, 3, 3)).astype(ml_dtypes.bfloat16)
    model = _model(helper.make_node("Conv", ["x", "w"], ["y"]), {"x": x}, 11, {"w": x})
    assert run(model, {"x": x})["y"].astype(np.float32).item() == 9


@pytest.mark.parametrize("operator", ["HardSigmoid", "InstanceNormalization", "LayerNormalization", "LeakyRelu"])
def test_defaults_of_attributes_are_numbers_of_float32(operator: str) -> None:
    """In float64, 0.01 and the 0.01 of float32 are two numbers."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 4))
    more = {"LayerNormalization": [rng.standard_normal(4)], "InstanceNormalization": [rng.standard_normal(3)] * 2}.get(
        operator, []
    )
    names = [f"w{n}" for n in range(len(more))]
    model = _model(helper.make_node(operator, ["x", *names], ["y"]), {"x": x}, 22, dict(zip(names, more, strict=True)))
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(run(model, {"x": x})["y"], expected, rtol=1e-13, atol=1e-15)


def test_resize_of_float64_is_as_exact_as_that() -> None:
    """Both witnesses of the random graphs work out places in float32."""
    x = np.random.default_rng(0).standard_normal((1, 1, 1, 6))
    node = helper.make_node(
        "Resize", ["x", "", "", "n"], ["y"], mode="cubic", coordinate_transformation_mode="align_corners", axes=[3]
    )
    places = np.arange(12) * 5 / 11
    first = np.floor(places).astype(int)
    expected = np.zeros(12)
    for tap in range(-1, 3):
        distance = np.abs(first + tap - places)
        near = 1.25 * distance**3 - 2.25 * distance**2 + 1
        far = -0.75 * (distance**3 - 5 * distance**2 + 8 * distance - 4)
        weight = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
        expected += weight * x[0, 0, 0, np.clip(first + tap, 0, 5)]
    result = run(_model(node, {"x": x}, 19, {"n": np.array([12])}), {"x": x})["y"]
    np.testing.assert_allclose(result[0, 0, 0], expected, rtol=1e-13, atol=1e-14)
