"""Nodes of constants alone, evaluated by the reference that comes with ONNX: shape arithmetic, mostly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from ansorlite.graph.graph import Array
from ansorlite.te import dtypes


def fold(node: onnx.NodeProto, arrays: Sequence[Array | None], opset: int) -> tuple[Array, ...] | None:
    """The results of ``node`` on constant inputs; ``None`` if the reference refuses it or gives no plain tensors.

    Args:
        arrays: one for each input of the node; ``None`` where an optional one is left out.
    """
    given = {name: array for name, array in zip(node.input, arrays, strict=True) if array is not None}
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()]
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in node.output if name]
    graph = helper.make_graph([node], "constants", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        results = ReferenceEvaluator(model).run(None, given)
    except Exception:
        # The reference fails in every way on what it does not know; the graph's own folding does without it.
        return None
    arrays_out = [np.asarray(result) for result in results]
    return tuple(arrays_out) if all(array.dtype.name in dtypes.NUMPY for array in arrays_out) else None
