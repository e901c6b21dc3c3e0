"""What the scenarios tune, compile and export: small, and with known results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import ansorlite as al
from ansorlite import te

Array = np.ndarray[Any, Any]

#: A file of kernels for the command line, and the words that name the one in it.
KERNELS: Final = """
from ansorlite import te


def matmul(m, n, k):
    a = te.placeholder((m, k), name="a")
    b = te.placeholder((k, n), name="b")
    r = te.reduce_axis(k, name="r")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]
"""
MATMUL: Final = ("kernels.py:matmul", "--args", "24", "24", "24")


def scale(factor: float, extent: int = 64) -> al.Task:
    """An array times ``factor``: exact where that is a small power of two."""
    a = te.placeholder((extent,), name="a")
    return al.Task([a, te.compute((extent,), lambda i: a[i] * factor, name="scaled")])


def product(m: int, n: int, k: int) -> al.Task:
    """Of two matrices."""
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    r = te.reduce_axis(k, name="r")
    return al.Task([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")])


@dataclass(frozen=True)
class Model:
    """An ONNX file with an input for it, and what it gives.

    Its values are small whole numbers, so that float32 is exact in any order.
    """

    path: Path
    x: Array
    y: Array

    @staticmethod
    def write(path: Path, rng: np.random.Generator) -> Model:
        """A dense layer with a ReLU."""
        weight, bias, x = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((24, 16), (16,), (8, 24)))
        nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
        graph = helper.make_graph(
            nodes,
            "dense",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, (8, 16))],
            [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        path.write_bytes(model.SerializeToString())
        return Model(path, x, np.maximum(x @ weight + bias, 0))

    def wrong(self, loaded: Any) -> bool:
        """Whether ``loaded``, which takes inputs by name, gives anything else."""
        return not np.array_equal(loaded(x=self.x)["y"], self.y)


def one_sentence(text: str) -> bool:
    """Whether it is one line that a person can read."""
    return "\n" not in text and text.isprintable() and 10 < len(text) < 2000
