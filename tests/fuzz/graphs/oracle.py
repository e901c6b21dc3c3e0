"""What a single node gives: by onnxruntime without optimisations, else by ``onnx.reference``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.fuzz.graphs.values import Array

Evaluate: TypeAlias = Callable[[Mapping[str, Array]], list[Array]]

#: The newest opset that onnxruntime knows.
NEWEST: Final = 26


class Witness(Enum):
    ONNXRUNTIME = "onnxruntime"
    REFERENCE = "onnx.reference"


class SilentError(Exception):
    """A witness does not know what a node gives."""


def version(operator: str, opset: int) -> int:
    return int(onnx.defs.get_schema(operator, opset).since_version)


def node_model(node: onnx.NodeProto, opset: int, inputs: Mapping[str, Array], parameters: Mapping[str, Array]) -> onnx.ModelProto:
    """A model of one node."""
    given = {name: array for name, array in inputs.items() if name not in parameters}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), [None] * a.ndim) for n, a in given.items()
    ]
    graph = helper.make_graph(
        [node],
        "node",
        infos,
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
        [numpy_helper.from_array(array, name) for name, array in parameters.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def evaluator(
    witness: Witness, node: onnx.NodeProto, opset: int, inputs: Mapping[str, Array], parameters: Mapping[str, Array]
) -> Evaluate:
    """The node as a function.

    Args:
        inputs: all of its inputs, for their dtypes and ranks.
        parameters: those that stay as they are.

    Raises:
        SilentError: the witness does not know the operator, or not for these dtypes.
    """
    if witness is Witness.REFERENCE:
        return _reference(node_model(node, opset, inputs, parameters))
    known = min(opset, NEWEST)
    if version(node.op_type, opset) != version(node.op_type, known):
        raise SilentError("a newer operator")
    if any(array.dtype.name == "bfloat16" for array in inputs.values()):
        raise SilentError("it takes no bfloat16 from numpy")
    return _session(node_model(node, known, inputs, parameters))


def _session(model: onnx.ModelProto) -> Evaluate:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # Each of onnxruntime's errors has a class of its own, and none is public.
        raise SilentError(str(error)) from None
    wanted = [entry.name for entry in model.graph.input]

    def run(inputs: Mapping[str, Array]) -> list[Array]:
        try:
            found = session.run(None, {name: inputs[name] for name in wanted})
        except Exception as error:
            raise SilentError(str(error)) from None
        return [_checked(array) for array in found]

    return run


def _reference(model: onnx.ModelProto) -> Evaluate:
    try:
        ready = ReferenceEvaluator(model)
    except Exception as error:
        raise SilentError(str(error)) from None
    wanted = [entry.name for entry in model.graph.input]
    # It computes in numpy, whose rules for dtypes are not ONNX's.
    kinds = [entry.type.tensor_type.elem_type for entry in onnx.shape_inference.infer_shapes(model).graph.output]

    def run(inputs: Mapping[str, Array]) -> list[Array]:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = ready.run(None, {name: inputs[name] for name in wanted})
        except Exception as error:
            # It fails in every way on what it does not know.
            raise SilentError(str(error)) from None
        arrays = [_checked(np.asarray(array)) for array in found]
        if [helper.np_dtype_to_tensor_dtype(array.dtype) for array in arrays] != kinds:
            raise SilentError("it gives another dtype than ONNX says")
        return arrays

    return run


def _checked(array: Any) -> Array:
    if (
        not isinstance(array, np.ndarray)
        or array.dtype.kind not in "biufV"
        or (array.dtype.kind == "V" and array.dtype.name != "bfloat16")
    ):
        raise SilentError("it gives something else than a tensor of numbers")
    return array
