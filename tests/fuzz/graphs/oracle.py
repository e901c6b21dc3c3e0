"""What a single node gives: by onnxruntime without optimisations, else by ``onnx.reference``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.fuzz.graphs.values import Array

Evaluate: TypeAlias = Callable[[Mapping[str, Array]], list[Array]]

#: The newest opset that onnxruntime knows.
NEWEST: Final = 26


#: Floats of two bytes, by ONNX's numbers.
_NARROW: Final = {TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16), TensorProto.FLOAT16: np.dtype(np.float16)}


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

    One of bfloat16 is that of float32, whose results are rounded; one of float16, too, by the reference, which would round at
    every step.

    Args:
        inputs: all of its inputs, for their dtypes and ranks.
        parameters: those that stay as they are.

    Raises:
        SilentError: the witness does not know the operator, or not for these dtypes.
    """
    narrow = ("bfloat16", "float16") if witness is Witness.REFERENCE else ("bfloat16",)
    if not any(array.dtype.name in narrow for array in inputs.values()):
        return _of(witness, node, opset, inputs, parameters)

    def widened(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {name: array.astype(np.float32) if array.dtype.name in narrow else array for name, array in arrays.items()}

    kinds = _kinds(node_model(node, opset, inputs, parameters))
    wide = _of(witness, node, opset, widened(inputs), widened(parameters))

    def run(given: Mapping[str, Array]) -> list[Array]:
        found = wide(widened(given))
        with np.errstate(all="ignore"):
            return [array.astype(_NARROW.get(kind, array.dtype)) for array, kind in zip(found, kinds, strict=True)]

    return run


def _of(
    witness: Witness, node: onnx.NodeProto, opset: int, inputs: Mapping[str, Array], parameters: Mapping[str, Array]
) -> Evaluate:
    if witness is Witness.REFERENCE:
        return _reference(node_model(node, opset, inputs, parameters))
    known = min(opset, NEWEST)
    if version(node.op_type, opset) != version(node.op_type, known):
        raise SilentError("a newer operator")
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
    kinds = _kinds(model)

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


def _kinds(model: onnx.ModelProto) -> list[int]:
    """ONNX's numbers of the dtypes of a node's results; 0 if nothing says it."""
    found = [entry.type.tensor_type.elem_type for entry in onnx.shape_inference.infer_shapes(model).graph.output]
    (node,) = model.graph.node
    schema = onnx.defs.get_schema(node.op_type, model.opset_import[0].version)
    given = {entry.name: entry.type.tensor_type.elem_type for entry in model.graph.input}
    given |= {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    # Inference knows nothing of some operators that are defined by others; inputs and results of one type have one dtype.
    alike = {formal.type_str: given[name] for formal, name in zip(schema.inputs, node.input, strict=False) if name}
    last = len(schema.outputs) - 1
    return [kind or alike.get(schema.outputs[min(position, last)].type_str, 0) for position, kind in enumerate(found)]


def _checked(array: Any) -> Array:
    if (
        not isinstance(array, np.ndarray)
        or array.dtype.kind not in "biufV"
        or (array.dtype.kind == "V" and array.dtype.name != "bfloat16")
    ):
        raise SilentError("it gives something else than a tensor of numbers")
    return array
