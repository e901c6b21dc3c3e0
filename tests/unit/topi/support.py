"""Running one operator through the numpy meaning, and one ONNX operator through the ONNX reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from ansorlite import te
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate

FLOAT = np.float32


def meaning(operator: Callable[..., te.Tensor], *arrays: np.ndarray, **attributes: Any) -> np.ndarray:
    """What ``operator`` computes of ``arrays``."""
    inputs = [te.placeholder(a.shape, dtype=a.dtype, name=f"x{n}") for n, a in enumerate(arrays)]
    return evaluate(ComputeDAG.of([*inputs, operator(*inputs, **attributes)]), arrays)[0]


def onnx_meaning(operator: str, *arrays: np.ndarray, opset: int = 22, **attributes: Any) -> np.ndarray:
    """What the ONNX reference says that the node ``operator`` computes of ``arrays``."""
    names = [f"x{n}" for n in range(len(arrays))]
    node = helper.make_node(operator, names, ["y"], **attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in zip(names, arrays, strict=True)
    ]
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))[0]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(FLOAT)
