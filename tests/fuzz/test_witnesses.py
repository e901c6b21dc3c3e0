"""Each fault that a witness is blamed for is one: it gives something else there than what is right.

What versions newer than those that were looked at get wrong is not known; then only ansorlite is held to what is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import helper
from packaging.version import Version

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[bench]'")

from tests.fuzz.graphs.check import KERNELS
from tests.fuzz.graphs.oracle import SilentError, Witness, evaluator, node_model
from tests.fuzz.graphs.undefined import FAULTS, NEWEST, Node, installed, witnesses
from tests.fuzz.graphs.values import Array

_ORT, _REFERENCE = Witness.ONNXRUNTIME, Witness.REFERENCE
_NAN, _INF = float("nan"), float("inf")


def f32(*values: Any) -> Array:
    return np.array(values, np.float32)


_NOTHING: Final = np.zeros((0, 3, 2), np.float32)
_LINE: Final = f32(*range(1, 10)).reshape(1, 1, 9)
_GRID: Final = f32(*range(18)).reshape(1, 2, 3, 3)

_REDUCTIONS: Final = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

#: (witness, what the node is, what is right: a result's first elements, or its shape).
CASES: Final[Sequence[tuple[Witness, Node, Any]]] = [
    *((_ORT, Node(f"Reduce{name}", {"axes": [-1]}, 11, [_NOTHING]), (0, 3, 1)) for name in _REDUCTIONS),
    *((_ORT, Node(name, {"axis": -1}, 13, [_NOTHING]), (0, 3, 1)) for name in ("ArgMax", "ArgMin")),
    (_ORT, Node("GridSample", {"mode": b"cubic", "padding_mode": b"border"}, 20,
                [f32(1, 2, 4, 8).reshape(1, 1, 1, 4), f32(1.2, 0).reshape(1, 1, 1, 2)]), [8]),
    (_ORT, Node("LayerNormalization", {}, 17, [f32(-_INF, -_INF).reshape(1, 2), f32(1, 1)], 2), [-_INF]),
    (_ORT, Node("Sign", {}, 13, [np.array([_NAN], np.float16)]), [_NAN]),
    (_ORT, Node("Resize", {"coordinate_transformation_mode": b"align_corners", "mode": b"linear"}, 19,
                [f32(1, 2, 3).reshape(1, 1, 1, 3), None, f32(1, 1, 1, 1.5)]), [1, 1.571428, 2.142857, 2.714286]),
    (_ORT, Node("LRN", {"size": 1, "alpha": 1.0}, 13, [f32(1e20, 0, 1).reshape(1, 3, 1, 1)]), [0, 0, 0.594604]),
    (_ORT, Node("QuantizeLinear", {}, 21, [np.array([_INF, 1], np.float16), np.array(0.5, np.float16)]), [255, 2]),
    (_REFERENCE, Node("QuantizeLinear", {}, 21, [f32(_INF, 1), f32(0.5)[0]]), [255, 2]),
    (_ORT, Node("MatMulInteger", {}, 10, [np.zeros((256, 0), np.uint8), np.zeros((0, 256), np.uint8)]), [0] * 256 * 256),
    (_ORT, Node("ReduceLogSumExp", {"axes": [0]}, 13, [np.array([0] * 20 + [1] * 20, np.int32)]), [4]),
    (_ORT, Node("InstanceNormalization", {}, 22,
                [f32(*range(8000, 8008)).reshape(1, 1, 8), f32(1), f32(0)]), [-1.527524, -1.091089, -0.654653, -0.218218]),
    (_ORT, Node("MaxPool", {"kernel_shape": [3], "strides": [2], "dilations": [2], "auto_pad": b"SAME_UPPER"}, 12, [_LINE]),
     [3, 5, 7, 9, 9]),
    (_ORT, Node("LogSoftmax", {}, 13, [np.array([1, _NAN])]), [_NAN, _NAN]),
    (_ORT, Node("LSTM", {"hidden_size": 1}, 22,
                [f32(0, 0, _INF, _INF).reshape(1, 2, 2), f32(1, 1, 1, 1, 1, 1, -1, 1).reshape(1, 4, 2),
                 np.ones((1, 4, 1), np.float32), np.ones((1, 8), np.float32)], 3), [0.849113, _NAN]),
    (_ORT, Node("Gemm", {"beta": 2.0}, 13, [np.zeros((1, 0), np.float32), np.zeros((0, 2), np.float32), f32(1, 1)]), [2, 2]),
    (_REFERENCE, Node("LogSoftmax", {}, 13, [f32(0, 200)]), [-200, 0]),
    (_REFERENCE, Node("LRN", {"size": 1, "alpha": 1.0}, 13, [np.ones((1, 2, 1, 1), np.float32)]), [0.594604, 0.594604]),
    (_REFERENCE, Node("MaxPool", {"kernel_shape": [2, 2]}, 12, [_GRID], 2), [4, 5, 7, 8, 13, 14, 16, 17]),
    (_REFERENCE, Node("ConvTranspose", {"group": 2}, 11,
                      [np.ones((1, 2, 1), np.float32), np.zeros((2, 1, 1), np.float32), f32(1, 2)]), [1, 2]),
    (_REFERENCE, Node("Shape", {"end": -3}, 15, [np.zeros((2, 3))]), (0,)),
    (_REFERENCE, Node("Gemm", {}, 13, [np.array([[2**53 + 1]]), np.array([[1]]), np.array([[0]])]), [2**53 + 1]),
    (_REFERENCE, Node("LpNormalization", {"p": 1}, 22, [f32(1, -3).reshape(1, 2)]), [0.25, -0.75]),
    (_REFERENCE, Node("GlobalMaxPool", {}, 22, [_LINE]), (1, 1, 1)),
    (_REFERENCE, Node("MaxPool", {"kernel_shape": [2], "strides": [3], "auto_pad": b"SAME_UPPER"}, 12, [_LINE]),
     [2, 5, 8]),
    (_REFERENCE, Node("Softmax", {"axis": 0}, 11, [f32(0, 0, 0, 0).reshape(2, 2)]), [0.25] * 4),
    (_REFERENCE, Node("Hardmax", {"axis": 0}, 11, [f32(0, 1, 2, 3).reshape(2, 2)]), [0, 0, 0, 1]),
    (_REFERENCE, Node("Unique", {"sorted": 0}, 11, [f32(2, 1)]), [2, 1]),
    (_REFERENCE, Node("AveragePool", {"kernel_shape": [2]}, 19, [f32(_NAN, 1, 1).reshape(1, 1, 3)]), [_NAN, 1]),
]  # fmt: skip


def _proto(node: Node) -> onnx.NodeProto:
    names = ["" if array is None else f"x{n}" for n, array in enumerate(node.inputs)]
    return helper.make_node(node.operator, names, [f"y{n}" for n in range(node.results)], **node.attributes)


def _is_right(found: Array, right: Any) -> bool:
    if isinstance(right, tuple):
        return found.shape == right
    if found.dtype.kind == "i":
        return bool(found.reshape(-1).tolist() == right)
    first = found.astype(np.float64).reshape(-1)[: len(right)]
    return len(first) == len(right) and np.allclose(first, right, 1e-5, 1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("blamed", "node", "right"), CASES, ids=[f"{witness.value}-{node.operator}" for witness, node, _ in CASES]
)
def test_a_blamed_witness_is_wrong_and_ansorlite_is_right(blamed: Witness, node: Node, right: Any) -> None:
    proto, inputs = _proto(node), {f"x{n}": array for n, array in enumerate(node.inputs) if array is not None}
    if installed(blamed) <= Version(NEWEST[blamed]):
        try:
            told = _is_right(evaluator(blamed, proto, node.opset, inputs, {})(inputs)[-1], right)
        except SilentError:
            pytest.fail("it refuses, and need not be blamed")
        by_chance = any(fault.by_chance and fault.witness is blamed and fault.blames(node) for fault in FAULTS)
        assert by_chance or told == (blamed in witnesses(node))
    model = onnx.shape_inference.infer_shapes(node_model(proto, node.opset, inputs, {}))
    assert _is_right(KERNELS["meaning"](model)(inputs)[proto.output[-1]], right)


def test_each_fault_has_a_case() -> None:
    for fault in FAULTS:
        assert any(fault.blames(node) for witness, node, _ in CASES if witness is fault.witness), fault.reason
