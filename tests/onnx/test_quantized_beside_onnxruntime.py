"""Models of quantised operators, beside onnxruntime with all its optimisations."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[peers]'")

import onnxruntime
from onnx.helper import make_node
from onnxruntime.quantization import QuantFormat

from ansorlite.api.compile import compile as compile_workload
from ansorlite.api.from_onnx import from_onnx
from ansorlite.graph.model import Model
from ansorlite.topi.conv import conv
from ansorlite.topi.matmul import gemm
from ansorlite.topi.reduction import reduce_mean
from benchmarks.models.example import Example
from benchmarks.models.quantized import static
from tests.onnx.support import run
from tests.onnx.test_quantized import CASES, model_of, within_a_quantum


@pytest.mark.parametrize("name", CASES)
def test_operators_on_integers(name: str) -> None:
    case = CASES[name][0]()
    model = case.qdq()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    within_a_quantum(run(model, case.inputs)["out"], session.run(None, dict(case.inputs))[0])


def test_a_block_as_the_quantiser_writes_it() -> None:
    """Convolutions, a residual sum, pooling and a product: compiled, beside onnxruntime with all its optimisations."""
    rng = np.random.default_rng(6)
    weights = {
        "w1": rng.standard_normal((16, 3, 3, 3)),
        "w2": rng.standard_normal((16, 16, 3, 3)) / 10,
        "w3": rng.standard_normal((16, 10)) / 4,
        "b1": rng.standard_normal(16),
        "b2": rng.standard_normal(16),
        "b3": rng.standard_normal(10),
    }
    nodes = [
        make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        make_node("Relu", ["c1"], ["r1"]),
        make_node("MaxPool", ["r1"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("Conv", ["m", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1]),
        make_node("Add", ["c2", "m"], ["s"]),
        make_node("Relu", ["s"], ["r2"]),
        make_node("GlobalAveragePool", ["r2"], ["g"]),
        make_node("Flatten", ["g"], ["f"]),
        make_node("Gemm", ["f", "w3", "b3"], ["out"]),
    ]
    x = rng.standard_normal((2, 3, 12, 12)).astype("float32")
    constants = {name: array.astype("float32") for name, array in weights.items()}
    data = model_of(nodes, {"x": x}, constants, np.zeros(0, "float32")).SerializeToString()
    example = static(lambda _: Example(data, {"x": x}, None), None, QuantFormat.QDQ)(rng)
    model = from_onnx(example.data)
    assert isinstance(model, Model)
    assert not {node.operator for node in model.graph.nodes} & {conv, gemm, reduce_mean}
    ours = compile_workload(model)({"x": x})["out"]
    session = onnxruntime.InferenceSession(example.data, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    quantum = float(np.diff(np.unique(expected)).min())
    # Of 9 results in a row each may be off by a quantum of its own; of the last one's, these are few.
    assert np.abs(ours - expected).max() <= 2.01 * quantum
