"""Which node of a graph is wrong, and what the second witness says of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.fuzz.graphs.check import Ready, wrong_in
from tests.fuzz.graphs.conditioning import NOISY, Expected, evaluate
from tests.fuzz.graphs.generator import RandomGraph
from tests.fuzz.graphs.oracle import SilentError, Witness, evaluator
from tests.fuzz.graphs.values import Array


def culprits(graph: RandomGraph, ready: Ready) -> list[str]:
    """A line for each node that, alone, gives something else than the witnesses say."""
    found = []
    nodes = [node for node in graph.model.graph.node if node.op_type != "Constant" or node.input]
    for node, witness in zip(nodes, graph.witnesses, strict=True):
        for call in graph.calls:
            inputs = {name: call.values[name] for name in node.input if name}
            line = _alone(graph, node, witness, inputs, ready)
            if line:
                found.append(line)
                break
    return found


def _alone(graph: RandomGraph, node: onnx.NodeProto, witness: Witness, inputs: Mapping[str, Array], ready: Ready) -> str:
    parameters = {name: array for name, array in inputs.items() if name in graph.parameters}
    expected = _expected(graph.opset, node, witness, inputs, parameters)
    if expected is None:
        return ""
    model = single(graph.opset, node, inputs, parameters, {name: own.array for name, own in expected.items()})
    try:
        results = ready(model)({name: array for name, array in inputs.items() if name not in parameters})
        what = wrong_in(results, expected)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
    if not what:
        return ""
    line = f"{_described(node, inputs)}: {what} by {witness.value}"
    second = None if witness is Witness.REFERENCE else _expected(graph.opset, node, Witness.REFERENCE, inputs, parameters)
    if second is None:
        return f"{line}; no second witness"
    try:
        own = wrong_in(results, second)
    except UnboundLocalError:
        return line
    return f"{line}; onnx.reference agrees with {'onnxruntime, ' + own if own else 'us'}"


def _expected(
    opset: int, node: onnx.NodeProto, witness: Witness, inputs: Mapping[str, Array], parameters: Mapping[str, Array]
) -> dict[str, Expected] | None:
    worlds = {name: (array,) * (NOISY + 1) for name, array in inputs.items()}
    try:
        run = evaluator(witness, node, opset, inputs, parameters)
        found = evaluate(run, node.op_type, worlds, parameters, np.random.default_rng(0))
    except SilentError:
        return None
    return {name: Expected.of(own) for name, own in zip(node.output, found, strict=True)}


def single(
    opset: int, node: onnx.NodeProto, inputs: Mapping[str, Array], parameters: Mapping[str, Array], outputs: Mapping[str, Array]
) -> onnx.ModelProto:
    """A model of one node."""

    def info(name: str, array: Array) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    graph = helper.make_graph(
        [node],
        "single",
        [info(name, array) for name, array in inputs.items() if name not in parameters],
        [info(name, array) for name, array in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in parameters.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _described(node: onnx.NodeProto, inputs: Mapping[str, Array]) -> str:
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    given = ", ".join(f"{inputs[name].dtype}{list(inputs[name].shape)}" if name else "-" for name in node.input)
    return f"{node.op_type}({given}; {attributes})"
