"""Each supported ONNX operator as a one-node model, against the ONNX reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.frontends.onnx.operators.table import CONVERTERS
from ansorlite.graph.hybrid import compile_any
from ansorlite.te import dtypes
from tests.onnx.support import Meaning, make_model, run

_RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


X = f32(2, 3, 4, 5)
POSITIVE = np.abs(f32(3, 4)) + np.float32(0.5)
IMAGE = f32(1, 4, 9, 8)
CHANNEL = [np.abs(f32(3)) + np.float32(0.1) for _ in range(4)]

#: (operator, data inputs, constant inputs that follow them, attributes[, opset])
CASES: list[tuple[Any, ...]] = [
    *[(name, [f32(3, 4)], [], {}) for name in ("Abs", "Ceil", "Erf", "Exp", "Floor", "HardSwish", "Identity", "Mish", "Neg")],
    *[(name, [f32(3, 4)], [], {}) for name in ("Relu", "Round", "Sigmoid", "Sign", "Softplus", "Softsign", "Tanh", "IsNaN")],
    *[(name, [POSITIVE], [], {}) for name in ("Log", "Sqrt", "Reciprocal")],
    *[
        (name, [f32(3, 4), f32(4)], [], {})
        for name in ("Add", "Sub", "Mul", "Div", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    ],
    ("Equal", [np.array([1, 2, 3]), np.array([1, 5, 3])], [], {}),
    *[(name, [f32(3, 4) > 0, f32(4) > 0], [], {}) for name in ("And", "Or", "Xor")],
    ("Not", [f32(3) > 0], [], {}),
    ("Pow", [POSITIVE, f32(4)], [], {}),
    ("Mod", [np.array([7, -7, 5]), np.array([3, 3, -4])], [], {}),
    ("Div", [np.array([7, -7, 6], np.int32), np.array([2, 2, -3], np.int32)], [], {}),
    ("Where", [f32(3, 4) > 0, f32(3, 4), f32(4)], [], {}),
    *[(name, [f32(3, 4), f32(4), f32(3, 1)], [], {}) for name in ("Max", "Min", "Sum", "Mean")],
    ("Max", [f32(3)], [], {}),
    *[(name, [f32(3, 4)], [], {"alpha": 0.7}) for name in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu")],
    ("Selu", [f32(3, 4)], [], {}),
    ("HardSigmoid", [f32(3, 4)], [], {"alpha": 0.3, "beta": 0.4}),
    ("Gelu", [f32(3, 4)], [], {}),
    ("Gelu", [f32(3, 4)], [], {"approximate": "tanh"}),
    ("PRelu", [f32(2, 3, 4)], [f32(3, 1)], {}),
    ("Clip", [f32(3, 4)], [np.float32(-0.3), np.float32(0.4)], {}),
    ("Clip", [f32(3, 4), np.float32(-0.3)], [], {}),
    ("Clip", [f32(3, 4)], [], {"min": -0.5, "max": 0.1}, 9),
    ("Cast", [f32(3, 4) * 5], [], {"to": TensorProto.INT32}),
    ("Cast", [np.array([0, 1, 2])], [], {"to": TensorProto.BOOL}),
    ("Dropout", [f32(3)], [], {}),
    # Products, convolutions, pooling
    ("MatMul", [f32(2, 3, 4), f32(4, 5)], [], {}),
    ("Gemm", [f32(3, 4)], [f32(4, 5), f32(5)], {}),
    ("Gemm", [f32(4, 3)], [f32(5, 4), f32(3, 5)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
    ("Gemm", [f32(3, 4)], [f32(4, 5)], {"alpha": 0.5}),
    ("Conv", [IMAGE], [f32(6, 4, 3, 3), f32(6)], {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
    ("Conv", [IMAGE], [f32(4, 1, 3, 3)], {"group": 4, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("Conv", [IMAGE], [f32(6, 2, 3, 2)], {"group": 2, "auto_pad": "SAME_LOWER"}),
    ("Conv", [f32(1, 2, 9)], [f32(3, 2, 4)], {"auto_pad": "VALID"}),
    ("Conv", [f32(1, 2, 4, 5, 6)], [f32(3, 2, 2, 3, 2)], {}),
    (
        "ConvTranspose",
        [f32(1, 3, 4, 5)],
        [f32(3, 2, 3, 3), f32(2)],
        {"strides": [2, 2], "pads": [1, 1, 0, 1], "output_padding": [1, 0]},
    ),
    ("ConvTranspose", [f32(1, 3, 3, 3)], [f32(3, 2, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("MaxPool", [IMAGE], [], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    ("MaxPool", [IMAGE], [], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", [IMAGE], [], {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("AveragePool", [IMAGE], [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("AveragePool", [IMAGE], [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("GlobalAveragePool", [IMAGE], [], {}),
    ("GlobalMaxPool", [IMAGE], [], {}),
    # Norms, softmax, reductions
    ("BatchNormalization", [X], CHANNEL, {"epsilon": 1e-3}),
    ("LayerNormalization", [X], [f32(4, 5), f32(4, 5)], {"axis": 2}),
    ("LayerNormalization", [X], [f32(5)], {}),
    ("RMSNormalization", [X], [f32(5)], {"epsilon": 1e-3}, 23),
    ("InstanceNormalization", [X], [f32(3), f32(3)], {}),
    ("GroupNormalization", [IMAGE], [f32(4), f32(4)], {"num_groups": 2}),
    # The reference normalises only as many channels as there are images.
    ("LRN", [f32(5, 5, 2, 2)], [], {"size": 3, "alpha": 0.1, "bias": 1.5}),
    ("LpNormalization", [X], [], {"axis": 1, "p": 2}),
    ("Softmax", [X], [], {"axis": 1}),
    ("LogSoftmax", [X], [], {}),
    *[(name, [X], [], {"axes": [1, -1]}, 11) for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")],
    *[
        (name, [X], [], {"axes": [2], "keepdims": 0}, 11)
        for name in ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
    ],
    ("ReduceLogSum", [np.abs(X)], [], {}, 11),
    ("ReduceSum", [X], [i64(0, 3)], {"keepdims": 0}),
    ("ReduceSum", [X], [], {"noop_with_empty_axes": 1}),
    ("ReduceMean", [X], [i64(-1)], {}),
    # Shapes
    ("Reshape", [X], [i64(0, -1, 5)], {}),
    ("Flatten", [X], [], {"axis": 2}),
    ("Flatten", [X], [], {"axis": -1}),
    ("Transpose", [X], [], {"perm": [0, 2, 3, 1]}),
    ("Transpose", [f32(1, 3, 1)], [], {}),
    ("Squeeze", [f32(1, 3, 1)], [i64(0)], {}),
    ("Squeeze", [f32(1, 3, 1)], [], {}),
    ("Squeeze", [f32(1, 3, 1)], [], {"axes": [2]}, 11),
    ("Unsqueeze", [f32(3, 4)], [i64(0, -1)], {}),
    ("Unsqueeze", [f32(3, 4)], [], {"axes": [1]}, 11),
    ("Concat", [f32(2, 3), f32(2, 4)], [f32(2, 1)], {"axis": 1}),
    ("Concat", [f32(2, 3), f32(1, 3)], [], {"axis": -2}),
    ("Slice", [X], [i64(1, -1), i64(3, -100), i64(1, 3), i64(1, -2)], {}),
    ("Slice", [X], [i64(0), i64(100), i64(2)], {}),
    ("Slice", [X], [], {"starts": [1], "ends": [3], "axes": [2]}, 9),
    ("Pad", [X], [i64(0, 1, 0, 2, 0, 0, 1, 0), np.float32(3)], {}),
    ("Pad", [f32(3, 4)], [i64(1, 2, 0, 1)], {"mode": "reflect"}),
    ("Pad", [f32(3, 4)], [i64(1, 2)], {"mode": "edge"}, 11),
    ("Pad", [f32(3, 4)], [], {"pads": [1, 0, 0, 2], "value": 2.0}, 9),
    ("Gather", [X], [np.array([[0, -1], [2, 1]])], {"axis": 1}),
    ("Expand", [f32(3, 1)], [i64(2, 1, 4)], {}),
    ("Tile", [f32(3, 2)], [i64(2, 3)], {}),
    ("DepthToSpace", [f32(1, 8, 2, 3)], [], {"blocksize": 2}),
    ("DepthToSpace", [f32(1, 8, 2, 3)], [], {"blocksize": 2, "mode": "CRD"}),
    ("SpaceToDepth", [f32(1, 2, 4, 6)], [], {"blocksize": 2}),
    ("Gather", [X], [np.array([1, 2])], {"axis": 1}),
    ("Gather", [X], [np.array(0)], {"axis": -1}),
    ("Gather", [X], [np.array([[0, 1, 2, 3]])], {"axis": 2}),
]


def _model(operator: str, data: list[np.ndarray], constants: list[np.ndarray], attributes: dict[str, Any], opset: int = 21):
    given = {f"x{n}": np.asarray(array) for n, array in enumerate(data)}
    known = {f"c{n}": np.asarray(array) for n, array in enumerate(constants)}
    if operator == "Pad" and attributes.get("mode") == "edge":
        # Axes come after an optional value that is left out.
        known["c2"] = i64(1)
        node = helper.make_node(operator, ["x0", "c0", "", "c2"], ["y"], **attributes)
        known["c0"], opset = i64(1, 2), 21
    else:
        node = helper.make_node(operator, [*given, *known], ["y"], **attributes)
    return make_model([node], given, ["y"], known, opset), given


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_one_node(case):
    model, given = _model(*case)
    (result,) = run(model, given).values()
    expected = ReferenceEvaluator(model).run(None, given)[0]
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_constants_are_folded_by_our_own_definitions():
    """The reference normalises as many channels as there are images, and adds up signed elements for p = 1."""
    x = f32(1, 4, 2, 2)
    nodes = [
        helper.make_node("LRN", ["c"], ["a"], size=3, alpha=0.5),
        helper.make_node("LpNormalization", ["c"], ["b"], p=1, axis=1),
        helper.make_node("Add", ["x", "a"], ["y"]),
        helper.make_node("Add", ["x", "b"], ["z"]),
    ]
    folded = run(make_model(nodes, {"x": x}, ["y", "z"], {"c": x}), {"x": x})
    given = run(make_model(nodes, {"x": x, "c": x}, ["y", "z"]), {"x": x, "c": x})
    for name in ("y", "z"):
        np.testing.assert_allclose(folded[name], given[name], rtol=1e-6)
    np.testing.assert_allclose(folded["z"] - x, x / np.abs(x).sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-6)


def test_tensors_without_elements_have_a_shape_in_a_row():
    x = np.zeros((2, 0, 3), np.float32)
    model = make_model([helper.make_node("Concat", ["x", "x", "c"], ["y"], axis=-1)], {"x": x}, ["y"], {"c": x[:, :, :1]})
    assert run(model, {"x": x})["y"].shape == (2, 0, 7)
    wrong = make_model([helper.make_node("Concat", ["x", "c"], ["y"], axis=2)], {"x": x}, ["y"], {"c": x})
    wrong.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.zeros((2, 0), np.float32), "c"))
    with pytest.raises(ModelError, match="Concat"):
        run(wrong, {"x": x})


def test_an_operator_that_others_define_gives_nothing_for_nothing():
    x = np.zeros((2, 0, 3), np.float32)
    model = make_model([helper.make_node("LayerNormalization", ["x", "s"], ["y"])], {"x": x}, ["y"], {"s": f32(3)})
    assert run(model, {"x": x})["y"].shape == x.shape


def test_old_hardmax_runs_over_all_dimensions_from_its_axis_on():
    x = f32(2, 3, 4)
    model = make_model([helper.make_node("Hardmax", ["x"], ["y"])], {"x": x}, ["y"], opset=11)
    found = run(model, {"x": x})["y"].reshape(2, 12)
    np.testing.assert_array_equal(found, np.eye(12)[x.reshape(2, 12).argmax(axis=1)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_mean_variance_normalization_keeps_its_dtype(dtype):
    x = f32(2, 3, 4, 5).astype(dtype)
    model = make_model([helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2])], {"x": x}, ["y"])
    found, exact = run(model, {"x": x})["y"], x.astype(np.float64)
    expected = (exact - exact.mean(axis=(0, 2), keepdims=True)) / exact.std(axis=(0, 2), keepdims=True)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-3 if dtype == "float16" else 1e-5)


def test_old_softmax_runs_over_all_dimensions_from_its_axis_on():
    model = make_model([helper.make_node("Softmax", ["x"], ["y"], axis=2)], {"x": X}, ["y"], opset=9)
    exponents = np.exp(X)
    np.testing.assert_allclose(run(model, {"x": X})["y"], exponents / exponents.sum(axis=(2, 3), keepdims=True), rtol=1e-5)


def test_output_shape_of_a_transposed_convolution_stands_for_pads():
    x, weight = f32(1, 3, 4, 5), f32(3, 2, 3, 3)
    asked, padded = (
        make_model([helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 2], **more)], {"x": x}, ["y"], {"w": weight})
        for more in ({"output_shape": [11, 12]}, {"pads": [1, 0, 0, 0], "output_padding": [0, 1]})
    )
    np.testing.assert_array_equal(run(asked, {"x": x})["y"], run(padded, {"x": x})["y"])


def test_split_gives_its_parts_in_order():
    x = f32(2, 7)
    even = make_model([helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2)], {"x": x}, ["a", "b"])
    results = run(even, {"x": x})
    np.testing.assert_array_equal(results["a"], x[:, :4])
    np.testing.assert_array_equal(results["b"], x[:, 4:])
    sizes = make_model([helper.make_node("Split", ["x", "s"], ["a", "b"], axis=-1)], {"x": x}, ["a", "b"], {"s": i64(1, 6)})
    np.testing.assert_array_equal(run(sizes, {"x": x})["b"], x[:, 1:])


def test_inputs_are_in_the_order_of_the_model_and_not_of_their_first_use():
    x, y, unread = f32(2, 3), f32(2, 3), f32(1)
    model = load_model(make_model([helper.make_node("Sub", ["y", "x"], ["z"])], {"x": x, "unread": unread, "y": y}, ["z"]))
    assert list(model.inputs) == ["x", "unread", "y"]
    np.testing.assert_array_equal(compile_any(model, Meaning)(x, unread, y)["z"], y - x)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize(
    ("places", "operator"),
    [
        ([1, 2, 3], "slice_scatter"),
        ([0, 2, -1], "slice_scatter"),
        ([2], "slice_scatter"),
        ([3, 0, 2], "table_scatter"),
        ([3, 0, 3], None),
    ],
)
def test_scatter_to_constant_places_looks_for_nothing(places, operator, reduction):
    """``None``: where several add up, they are looked for; of replacements the last one stays."""
    if operator is None:
        operator = "table_scatter" if reduction == "none" else "scatter"
    x, updates = f32(5, 3, 2), f32(len(places), 3, 2)
    indices = np.array(places)
    given = {"x": x, "u": updates}
    expected = x.copy()
    combine = {"none": lambda _, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    for place, update in zip(places, updates, strict=True):
        expected[place] = combine(expected[place], update)
    for node, constant in (
        (helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction), indices[:, None]),
        (
            helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction=reduction, axis=0),
            np.broadcast_to(indices[:, None, None], updates.shape).copy(),
        ),
    ):
        model = make_model([node], given, ["y"], {"i": constant})
        used = {node.operator.__name__ for node in load_model(model).graph.nodes}
        assert any(name.startswith(operator) for name in used), used
        np.testing.assert_allclose(run(model, given)["y"], expected, rtol=1e-6)


def test_scatter_to_constant_places_in_several_dimensions():
    x, updates = f32(3, 4, 2), f32(2, 2, 2)
    places = np.array([[[2, 1], [0, -1]], [[-2, 0], [2, 2]]])
    expected = x.copy()
    expected[places[..., 0], places[..., 1]] = updates
    model = make_model([helper.make_node("ScatterND", ["x", "i", "u"], ["y"])], {"x": x, "u": updates}, ["y"], {"i": places})
    np.testing.assert_array_equal(run(model, {"x": x, "u": updates})["y"], expected)


def test_results_besides_the_first():
    x, scale = f32(2, 3, 4), np.ones(4, np.float32)
    norm = helper.make_node("LayerNormalization", ["x", "s"], ["y", "mean", "deviation"], epsilon=1e-3)
    model = make_model([norm], {"x": x}, ["y", "mean", "deviation"], {"s": scale})
    results, expected = run(model, {"x": x}), ReferenceEvaluator(model).run(None, {"x": x})
    for name, array in zip(("y", "mean", "deviation"), expected, strict=True):
        np.testing.assert_allclose(results[name], array, rtol=1e-4, atol=1e-5)
    dropped = run(make_model([helper.make_node("Dropout", ["x"], ["y", "kept"])], {"x": x}, ["y", "kept"]), {"x": x})
    np.testing.assert_array_equal(dropped["y"], x)
    assert dropped["kept"].all()


def test_a_constant_that_would_be_huge_is_not_computed_at_import():
    nodes = [helper.make_node("Expand", ["one", "shape"], ["huge"]), helper.make_node("ReduceSum", ["huge"], ["y"], keepdims=0)]
    x = f32(1)
    model = make_model(nodes, {"x": x}, ["y"], {"one": np.ones(1, np.float32), "shape": i64(1 << 20, 1 << 20)})
    assert load_model(model).outputs["y"].shape == ()


def test_neighbours_are_gathered_without_a_kernel():
    x = f32(1, 5, 4)
    nodes = [helper.make_node("Gather", ["x", "i"], ["row"], axis=1), helper.make_node("Relu", ["row"], ["y"])]
    model = make_model(nodes, {"x": x}, ["y"], {"i": np.array(-2)})
    assert [group.name for group in load_model(model).groups] == ["relu"]
    np.testing.assert_array_equal(run(model, {"x": x})["y"], np.maximum(x[:, 3], 0))


def test_shape_arithmetic_is_done_at_import():
    x = f32(2, 3, 4)
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "front"], ["row_list"]),
        helper.make_node("Concat", ["row_list", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    model = make_model(nodes, {"x": x}, ["y"], {"zero": np.array(0), "front": i64(0), "rest": i64(-1)})
    np.testing.assert_array_equal(run(model, {"x": x})["y"], x.reshape(2, 12))


def test_constants_and_constant_of_shape():
    x = f32(2, 3)
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [2.5])
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["filled"], value=value),
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Mul", ["x", "filled"], ["scaled"]),
        helper.make_node("Add", ["scaled", "one"], ["y"]),
    ]
    model = make_model(nodes, {"x": x}, ["y"], {"shape": i64(2, 3)})
    np.testing.assert_allclose(run(model, {"x": x})["y"], x * np.float32(2.5) + 1, rtol=1e-6)


def test_the_table_is_sorted():
    assert list(CONVERTERS) == sorted(CONVERTERS)


def test_one_hot_cuts_fractions_off_its_indices():
    """By ONNX, they are cast to integers; its reference compares them as they are."""
    indices, values = np.array([1.9, -0.5, -1.0, 3.0], np.float32), np.array([5, 7], np.int32)
    model = make_model(
        [helper.make_node("OneHot", ["x", "depth", "v"], ["y"])], {"x": indices}, ["y"], {"depth": i64(3), "v": values}
    )
    np.testing.assert_array_equal(run(model, {"x": indices})["y"], [[5, 7, 5], [7, 5, 5], [5, 5, 7], [5, 5, 5]])


@pytest.mark.parametrize("results", [1, 4])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_in_the_order_of_first_appearance(axis, results):
    x = np.array([[2.0, 1.0, 2.0], [0.0, 3.0, 0.0], [2.0, 1.0, 2.0]], np.float32)
    wanted = {
        None: ([2, 1, 0, 3], [0, 1, 3, 4], [0, 1, 0, 2, 3, 2, 0, 1, 0], [4, 2, 2, 1]),
        0: ([[2, 1, 2], [0, 3, 0]], [0, 1], [0, 1, 0], [2, 1]),
        1: ([[2, 1], [0, 3], [2, 1]], [0, 1], [0, 1, 0], [2, 1]),
    }[axis]
    names = ["y", "first", "inverse", "counts"][:results]
    node = helper.make_node("Unique", ["x"], names, sorted=0, **({} if axis is None else {"axis": axis}))
    found = run(make_model([node], {"x": x}, names), {"x": x})
    for name, expected in zip(names, wanted, strict=False):
        np.testing.assert_array_equal(found[name], expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_determinants_of_narrow_floats(dtype):
    x = np.array([[[2, 1], [4, 5]], [[1, 2], [2, 4]]]).astype(dtypes.NUMPY[dtype])
    found = run(make_model([helper.make_node("Det", ["x"], ["y"])], {"x": x}, ["y"], opset=22), {"x": x})["y"]
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found.astype(float), [6, 0], atol=1e-6)


@pytest.mark.parametrize("operator", ["Mish", "Softplus", "Elu", "Celu", "Selu", "Gelu"])
def test_activations_of_narrow_floats_are_rounded_once(operator):
    x = np.linspace(-9, 5, 57).astype(np.float16)
    model = make_model([helper.make_node(operator, ["x"], ["y"])], {"x": x}, ["y"], opset=22)
    wide = make_model([helper.make_node(operator, ["x"], ["y"])], {"x": x.astype(np.float32)}, ["y"], opset=22)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    np.testing.assert_array_equal(run(model, {"x": x})["y"], run(wide, {"x": x.astype(np.float32)})["y"].astype(np.float16))
