"""The models that variations start from: ONNX's own node tests, and some of operators that have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.audit.vary import Case
from benchmarks.conformance.cases import cases

#: Newest operator set that onnxruntime has most operators of.
_NEWEST: Final = 21
_ML: Final = 3

_RNG: Final = np.random.default_rng(0)


@cache
def seeds() -> dict[str, tuple[Case, ...]]:
    """Operator → models of it."""
    found: dict[str, list[Case]] = {}
    for case in [*_from_tests(), *_own()]:
        found.setdefault(case.operator, []).append(case)
    return {operator: tuple(found[operator]) for operator in sorted(found)}


def _from_tests() -> Iterator[Case]:
    for test in cases():
        graph = test.model.graph
        if len(graph.node) != 1 or "_expanded" in test.name or not test.data_sets:
            continue
        if graph.node[0].op_type == "Bernoulli" or "training_dropout" in test.name:
            # Nobody says which random numbers.
            continue
        if test.name == "test_maxunpool_export_with_output_shape":
            # onnxruntime does not give what ONNX's own test expects.
            continue
        opsets = {entry.domain: entry.version for entry in test.model.opset_import}
        node = graph.node[0]
        opsets.setdefault("", _NEWEST)
        opsets = {**opsets, "": min(opsets[""], _NEWEST)}
        if node.domain == "ai.onnx.ml":
            opsets[node.domain] = min(opsets[node.domain], 5)
        arrays = [numpy_helper.to_array(d) if isinstance(d, onnx.TensorProto) else d for d in test.data_sets[0][0]]
        names = [entry.name for entry in graph.input]
        data = {n: np.asarray(a) if isinstance(a, np.generic) else a for n, a in zip(names, arrays, strict=True)}
        yield Case(node, data, {entry.name: entry.type for entry in graph.input}, opsets)


def _case(
    operator: str, data: Mapping[str, Any], outputs: int = 1, domain: str = "", opset: int = _NEWEST, **attributes: Any
) -> Case:
    arrays = {name: np.asarray(datum) for name, datum in data.items()}
    node = helper.make_node(operator, list(arrays), [f"out{n}" for n in range(outputs)], domain=domain, **attributes)
    kinds = {n: helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in arrays.items()}
    return Case(node, arrays, kinds, {"": opset, "ai.onnx.ml": _ML} if domain else {"": opset})


def _normal(*shape: int) -> np.ndarray[Any, Any]:
    return _RNG.standard_normal(shape).astype(np.float32)


def _own() -> Iterator[Case]:
    x = _normal(3, 4)
    yield _case("Upsample", {"x": _normal(1, 2, 3, 4), "s": np.array([1, 1, 2, 3], np.float32)}, opset=9, mode="linear")
    yield _case("GroupNormalization", {"x": _normal(2, 4, 3), "s": _normal(2), "b": _normal(2)}, opset=20, num_groups=2)
    yield _case("Hardmax", {"x": _normal(2, 3, 4)}, opset=11, axis=1)
    yield _case("LpPool", {"x": _normal(1, 2, 6, 6)}, kernel_shape=[2, 3], p=3)
    yield _case("GlobalLpPool", {"x": _normal(1, 2, 6, 6)}, p=3)
    yield _case("MaxPool", {"x": _normal(2, 3, 6, 7)}, 2, kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 1, 1])
    yield _case("MaxPool", {"x": _normal(2, 3, 8)}, 2, kernel_shape=[3], strides=[2], pads=[1, 1])
    yield _case(
        "MaxUnpool",
        {"x": _normal(1, 2, 2, 2), "i": np.array([[[[0, 3], [8, 10]], [[20, 22], [28, 31]]]])},
        kernel_shape=[2, 2],
        strides=[2, 2],
    )
    yield _case(
        "RoiAlign",
        {
            "x": _normal(2, 3, 8, 8),
            "rois": np.array([[0, 0, 4, 4], [1, 2, 7, 6], [-1, 3, 9, 9]], np.float32),
            "i": np.array([0, 1, 1]),
        },
        opset=16,
        output_height=2,
        output_width=3,
        sampling_ratio=2,
        spatial_scale=0.5,
    )
    yield _case("TopK", {"x": _normal(3, 4, 5), "k": np.array([3])}, 2, axis=1)
    yield _case("TopK", {"x": _RNG.integers(0, 3, (4, 6)), "k": np.array([4])}, 2, axis=-1)
    yield _case("Unique", {"x": _RNG.integers(0, 3, (4, 6)).astype(np.float32)}, 4)
    yield _case("Unique", {"x": _RNG.integers(0, 2, (5, 2)).astype(np.int64)}, 4, axis=0)
    yield _case("NonZero", {"x": _RNG.integers(0, 2, (2, 3, 4)).astype(np.float32)})
    yield _case("Det", {"x": _normal(2, 3, 4, 4)})
    yield _case("DFT", {"x": _normal(2, 5, 7, 1), "length": np.array(6), "axis": np.array(1)}, opset=20)
    yield _case("DFT", {"x": _normal(2, 8, 2)}, opset=17, axis=1)
    yield _case("STFT", {"x": _normal(2, 32, 1), "step": np.array(4), "window": _normal(16), "length": np.array(16)}, opset=17)
    yield _case(
        "MelWeightMatrix",
        {
            "n": np.array(8),
            "dft": np.array(64),
            "rate": np.array(8192),
            "low": np.array(100, np.float32),
            "high": np.array(3000, np.float32),
        },
        opset=17,
    )
    yield _case("Col2Im", {"x": _normal(1, 8, 9), "image": np.array([4, 4]), "block": np.array([2, 2])}, opset=18)
    yield _case(
        "DeformConv",
        {"x": _normal(1, 2, 5, 5), "w": _normal(3, 2, 2, 2), "offset": _normal(1, 8, 4, 4), "b": _normal(3)},
        opset=19,
    )
    yield _case(
        "DeformConv",
        {
            "x": _normal(1, 4, 5, 5),
            "w": _normal(4, 2, 2, 2),
            "offset": _normal(1, 16, 5, 5),
            "b": _normal(4),
            "mask": _normal(1, 8, 5, 5),
        },
        opset=19,
        group=2,
        offset_group=2,
        strides=[2, 2],
        pads=[2, 2, 2, 2],
        dilations=[1, 1],
    )
    yield _case(
        "NonMaxSuppression",
        {
            "boxes": np.sort(_RNG.uniform(0, 4, (2, 6, 4)).astype(np.float32)),
            "scores": _RNG.uniform(0, 1, (2, 3, 6)).astype(np.float32),
            "most": np.array([3]),
            "iou": np.array([0.4], np.float32),
            "score": np.array([0.2], np.float32),
        },
    )
    yield _case(
        "BatchNormalization",
        {"x": _normal(2, 3, 4), "s": _normal(3), "b": _normal(3), "m": _normal(3), "v": abs(_normal(3))},
        3,
        opset=15,
        training_mode=1,
    )
    yield _case(
        "BatchNormalization",
        {"x": _normal(2, 3, 4), "s": _normal(3), "b": _normal(3), "m": _normal(3), "v": abs(_normal(3))},
        opset=15,
    )
    yield _case(
        "OneHot",
        {"i": np.array([0, -1, 2, 7], np.float32), "depth": np.array([5], np.float32), "v": np.array([-1, 3], np.float32)},
    )
    yield _case("DynamicQuantizeLinear", {"x": np.zeros((2, 3), np.float32)}, 3, opset=13)
    yield _case("DynamicQuantizeLinear", {"x": _normal(2, 3)}, 3, opset=13)
    yield _case("SplitToSequence", {"x": _normal(6, 4), "split": np.array(4)}, axis=0)
    yield _case("Loop", {"n": np.array(3), "go": np.array(True), "x": x}, 2, body=_loop_body())
    scan = {"body": _scan_body(), "num_scan_inputs": 1}
    for more in (
        {},
        {"scan_input_axes": [1], "scan_output_axes": [1]},
        {"scan_output_directions": [1], "scan_input_directions": [1]},
    ):
        yield _case("Scan", {"state": _normal(3), "rows": _normal(3, 3)}, 2, **scan, **more)
    yield _case("CastLike", {"x": x * 30, "like": np.zeros(1, np.int8)}, opset=19)
    for to in (
        onnx.TensorProto.FLOAT8E4M3FN,
        onnx.TensorProto.FLOAT8E5M2,
        onnx.TensorProto.STRING,
        onnx.TensorProto.INT4,
        onnx.TensorProto.BFLOAT16,
    ):
        yield _case("Cast", {"x": x * 100}, to=to, opset=21)
    ml = {"domain": "ai.onnx.ml"}
    yield _case(
        "Imputer",
        {"x": np.where(x > 0, x, np.nan).astype(np.float32)},
        **ml,
        imputed_value_floats=[1.5],
        replaced_value_float=float("nan"),
    )
    yield _case(
        "LinearClassifier",
        {"x": x},
        2,
        **ml,
        coefficients=_normal(12).tolist(),
        intercepts=[0.1, 0.2, 0.3],
        classlabels_ints=[3, 5, 7],
    )
    yield _case(
        "LinearClassifier", {"x": x}, 2, **ml, coefficients=_normal(4).tolist(), intercepts=[0.1], classlabels_ints=[3, 5]
    )
    yield _case(
        "LinearClassifier",
        {"x": x},
        2,
        **ml,
        coefficients=_normal(12).tolist(),
        classlabels_strings=["a", "b", "c"],
        multi_class=1,
    )
    yield _case("LinearRegressor", {"x": x}, **ml, coefficients=_normal(8).tolist(), intercepts=[0.1, 0.2], targets=2)
    yield _case("Normalizer", {"x": x}, **ml, norm="L2")
    yield _case("Normalizer", {"x": -abs(x)}, **ml, norm="MAX")
    yield _case("OneHotEncoder", {"x": np.array([1, 3, 2])}, **ml, cats_int64s=[1, 2, 3])
    yield _case("OneHotEncoder", {"x": np.array([[1, 4], [7, 2]])}, **ml, cats_int64s=[1, 2, 3], zeros=1)
    yield _case("Scaler", {"x": x}, **ml, offset=[0.5, 1, -1, 2], scale=[1, 2, 3, 0.5])
    yield _case("Scaler", {"x": x}, **ml, offset=[0.5], scale=[2.0])
    yield _case("Binarizer", {"x": x}, **ml, threshold=0.3)
    yield _case("ArrayFeatureExtractor", {"x": x, "y": np.array([2, 0])}, **ml)
    yield _case("FeatureVectorizer", {"x": x, "y": _normal(3, 2)}, **ml, inputdimensions=[4, 2])
    yield _case(
        "LabelEncoder",
        {"x": np.array([1, 5, 2])},
        domain="ai.onnx.ml",
        keys_int64s=[1, 2],
        values_floats=[0.5, 1.5],
        default_float=-3.0,
    )
    for kernel, params in (("RBF", [0.5, 0, 3]), ("POLY", [0.5, 0.2, 2])):
        yield _case(
            "SVMRegressor",
            {"x": x},
            **ml,
            kernel_type=kernel,
            kernel_params=params,
            n_supports=2,
            coefficients=[0.7, -0.4],
            support_vectors=_normal(8).tolist(),
            rho=[0.3],
        )
    yield _case(
        "SVMRegressor",
        {"x": x},
        **ml,
        kernel_type="LINEAR",
        kernel_params=[0.5, 0.2, 2],
        coefficients=_normal(4).tolist(),
        rho=[0.3],
        one_class=1,
    )
    yield _case(
        "SVMClassifier",
        {"x": x},
        2,
        **ml,
        kernel_type="RBF",
        kernel_params=[0.5, 0, 3],
        vectors_per_class=[2, 1],
        coefficients=[0.7, -0.4, 0.3],
        support_vectors=_normal(12).tolist(),
        rho=[0.3],
        classlabels_ints=[0, 1],
    )
    yield _case(
        "SVMClassifier",
        {"x": x},
        2,
        **ml,
        kernel_type="SIGMOID",
        kernel_params=[0.5, 0.1, 3],
        vectors_per_class=[1, 1, 1],
        coefficients=_normal(6).tolist(),
        support_vectors=_normal(12).tolist(),
        rho=[0.3, 0.1, 0.2],
        classlabels_strings=["a", "b", "c"],
    )
    tree = {
        "nodes_treeids": [0, 0, 0, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 0, 1, 2],
        "nodes_featureids": [0, 0, 0, 2, 0, 0],
        "nodes_values": [0.1, 0, 0, -0.2, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
    }
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        yield _case(
            "TreeEnsembleRegressor",
            {"x": x},
            **ml,
            **tree,
            n_targets=1,
            aggregate_function=aggregate,
            base_values=[0.25],
            target_treeids=[0, 0, 1, 1],
            target_nodeids=[1, 2, 1, 2],
            target_ids=[0] * 4,
            target_weights=[0.5, -1, 2, 0.25],
        )
    for labels in ([0, 1], [2, 5, 7]):
        yield _case(
            "TreeEnsembleClassifier",
            {"x": x},
            2,
            **ml,
            **tree,
            class_treeids=[0, 0, 1, 1],
            class_nodeids=[1, 2, 1, 2],
            class_ids=[0, 1, 1, len(labels) - 1],
            class_weights=[0.5, 0.75, 0.2, 0.25],
            classlabels_int64s=labels,
        )


def _loop_body() -> onnx.GraphProto:
    info = helper.make_tensor_value_info
    float_, bool_, int_ = onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL, onnx.TensorProto.INT64
    return helper.make_graph(
        [
            helper.make_node("Identity", ["go_in"], ["go_out"]),
            helper.make_node("Tanh", ["v"], ["w"]),
            helper.make_node("Identity", ["w"], ["row"]),
        ],
        "body",
        [info("i", int_, []), info("go_in", bool_, []), info("v", float_, [3, 4])],
        [info("go_out", bool_, []), info("w", float_, [3, 4]), info("row", float_, [3, 4])],
    )


def _scan_body() -> onnx.GraphProto:
    info, float_ = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    return helper.make_graph(
        [helper.make_node("Add", ["s", "r"], ["next"]), helper.make_node("Tanh", ["next"], ["out"])],
        "body",
        [info("s", float_, [3]), info("r", float_, [3])],
        [info("next", float_, [3]), info("out", float_, [3])],
    )
