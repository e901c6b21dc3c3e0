"""Small models that are exported for GPUs, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import ansorlite as al
from ansorlite import te
from ansorlite.api.export import export
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.model import Model
from ansorlite.target import resolve

RNG = np.random.default_rng(0)
W1, W2, W3 = (RNG.standard_normal(shape).astype(np.float32) for shape in ((4, 6), (6, 3), (2, 4)))
X = RNG.standard_normal((2, 4)).astype(np.float32)


def proto() -> onnx.ModelProto:
    """The softmax of two products with a ReLU between them."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w2"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", (2, 4)), ("y", (2, 3))))
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(W1, "w1"), numpy_helper.from_array(W2, "w2")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def exported(target: str, path: Path, **options: Any) -> None:
    export(al.from_onnx(proto(), target=target), path, **options)


def _scaled(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """What depends on constants alone is its own stage, which is prepared: sums of rows of ``w``."""
    k = te.reduce_axis(w.shape[1], name="k")
    total = te.compute((w.shape[0],), lambda i: te.sum(w[i, k], axis=k), name="total")
    return te.compute(x.shape, lambda i, j: x[i, j] * total[i], name="scaled")


def with_prepared_weights(target: str, path: Path) -> None:
    build = GraphBuilder()
    x = build.input("x", Value(X.shape, "float32"))
    scaled = build.apply(_scaled, x, build.constant(W3))
    export(Model.of(build.finish({"y": scaled}), resolve(target)), path)


def meaning(name: str, x: np.ndarray) -> np.ndarray:
    """Of the library with that name."""
    if name == "prepared.so":
        return x * W3.sum(1, keepdims=True)
    powers = np.exp(np.maximum(x @ W1, 0) @ W2)
    return powers / powers.sum(1, keepdims=True)
