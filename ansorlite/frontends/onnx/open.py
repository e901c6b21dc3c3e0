"""ONNX models whose sizes are known only when they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from ansorlite.frontends.onnx.importer import import_model, initializers
from ansorlite.frontends.onnx.inputs import open_values
from ansorlite.frontends.onnx.models import model_of
from ansorlite.frontends.onnx.tensors import tensor_array
from ansorlite.graph.dimensions import Dim, Dimensions, Shapes, Sizes, with_sizes
from ansorlite.graph.graph import Array, Graph
from ansorlite.graph.hybrid import HybridModel
from ansorlite.graph.open_model import OpenModel
from ansorlite.target import Target, resolve


def open_model(
    proto: onnx.ModelProto,
    target: str | Target,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dims: Mapping[str, Sizes] | None = None,
    *,
    blocked: bool = True,
    precision: str = "float32",
) -> OpenModel:
    """A checked ``proto``, with all that is open left open but for what ``shapes`` and ``dims`` fix.

    Args:
        shapes: input name → for each dimension its extent, or a name that leaves it open.
        dims: open dimension → its size, or the sizes that programs are made for.
        blocked, precision: see :meth:`ansorlite.graph.model.Model.of`.

    Raises:
        ModelError: a shape is given for an input that is not there or declares another one.
        ArgumentError: ``dims`` names no open dimension, or gives sizes that are not positive integers.
        TargetError: an unknown target.
    """
    machine = resolve(target)
    nodes, constants = _nodes_and_constants(proto)
    dimensions = Dimensions(*with_sizes(open_values(proto.graph, shapes or {}), dims or {}))

    def specialize(fixed: Shapes, values: Mapping[str, Array] | None) -> Graph | HybridModel:
        imported = import_model(nodes, fixed, values, constants, sizes_vary=bool(dimensions.names))
        if imported.graph is not None:
            return imported.graph
        model = model_of(imported, machine, blocked=blocked, precision=precision)
        assert isinstance(model, HybridModel)
        return model

    outputs = tuple(entry.name for entry in proto.graph.output)
    return OpenModel(dimensions, outputs, machine, specialize, blocked, precision)


def _nodes_and_constants(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model without constants, and these by name: they are read once, and not again for every size."""
    constants = initializers(model.graph)
    rest = onnx.ModelProto(opset_import=model.opset_import)
    rest.graph.name = model.graph.name
    rest.graph.input.extend(entry for entry in model.graph.input if entry.name not in constants)
    rest.graph.output.extend(model.graph.output)
    for node in model.graph.node:
        given = [attribute for attribute in node.attribute if attribute.name == "value" and attribute.HasField("t")]
        if node.op_type == "Constant" and len(given) == len(node.attribute) == 1:
            constants[node.output[0]] = tensor_array(given[0].t)
        else:
            rest.graph.node.append(node)
    return rest, constants
