"""From a checked ONNX model to a graph, node by node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import onnx
from onnx import helper

from ansorlite.errors import ExpressionError, ModelError
from ansorlite.frontends.onnx.fold import fold
from ansorlite.frontends.onnx.node import NodeView
from ansorlite.frontends.onnx.operators.shape import tensor_array
from ansorlite.frontends.onnx.operators.table import CONVERTERS
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Array, Graph
from ansorlite.te import dtypes

#: Names of the domain of the standard operators.
_STANDARD: Final = ("", "ai.onnx")

#: Elements above which constants are left to the graph's own folding, which makes no needless copies.
_LARGEST_FOLDED: Final = 1 << 16


def import_graph(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> Graph:
    """The graph of ``model``, with ``shapes`` for the inputs whose shapes it leaves open.

    Raises:
        ModelError: an operator is not supported, a shape is open or wrong, or a node's parts do not fit together.
    """
    return _Importer(model, shapes).graph()


class _Importer:
    """One import.

    Attributes:
        values: ONNX value name → value of the graph.
    """

    def __init__(self, model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
        self.proto = model.graph
        self.opset = next((entry.version for entry in model.opset_import if entry.domain in _STANDARD), 1)
        self.shapes = shapes
        self.builder = GraphBuilder()
        self.values: dict[str, str] = {}

    def graph(self) -> Graph:
        self._check_supported()
        if self.proto.sparse_initializer:
            raise ModelError("the model has sparse initializers, which are not supported")
        for tensor in self.proto.initializer:
            array = tensor_array(tensor)
            _check_dtype(f"initializer {tensor.name!r}", array.dtype.name)
            self.values[tensor.name] = self.builder.constant(array, tensor.name)
        self._add_inputs()
        read = {name for node in self.proto.node for name in node.input} | {output.name for output in self.proto.output}
        for node in self.proto.node:
            self._add_node(node, read)
        return self.builder.finish({output.name: self._value(output.name, "output") for output in self.proto.output})

    def _check_supported(self) -> None:
        for node in self.proto.node:
            if node.domain not in _STANDARD or node.op_type not in CONVERTERS:
                name = node.name or (node.output[0] if node.output else "")
                operator = f"{node.domain}.{node.op_type}" if node.domain not in _STANDARD else node.op_type
                supported = ", ".join(sorted(CONVERTERS))
                raise ModelError(f"node {name!r} needs operator {operator}, which is not supported; supported are: {supported}")

    def _add_inputs(self) -> None:
        # Up to IR version 3, initializers are listed among the inputs.
        inputs = [entry for entry in self.proto.input if entry.name not in self.values]
        unknown = sorted(set(self.shapes) - {entry.name for entry in inputs})
        if unknown:
            names = ", ".join(entry.name for entry in inputs)
            raise ModelError(f"a shape is given for {unknown[0]!r}, which is not an input of the model; its inputs are: {names}")
        for entry in inputs:
            if not entry.type.HasField("tensor_type"):
                raise ModelError(f"input {entry.name!r} is not a tensor; only tensors are supported")
            dtype = _dtype(entry.type.tensor_type.elem_type)
            _check_dtype(f"input {entry.name!r}", dtype)
            self.values[entry.name] = self.builder.input(entry.name, Value(self._shape(entry), dtype))

    def _shape(self, entry: onnx.ValueInfoProto) -> tuple[int, ...]:
        tensor = entry.type.tensor_type
        declared = list(tensor.shape.dim) if tensor.HasField("shape") else None
        given = self.shapes.get(entry.name)
        cure = f'give it with shapes={{"{entry.name}": (...)}}'
        if given is None:
            if declared is None:
                raise ModelError(f"the shape of input {entry.name!r} is open; {cure}")
            for position, dim in enumerate(declared):
                if not dim.HasField("dim_value"):
                    name = f" ({dim.dim_param!r})" if dim.dim_param else ""
                    raise ModelError(f"dimension {position}{name} of input {entry.name!r} is open; {cure}")
            given = [dim.dim_value for dim in declared]
        elif declared is not None:
            fits = len(declared) == len(given) and all(
                not d.HasField("dim_value") or d.dim_value == g for d, g in zip(declared, given, strict=True)
            )
            if not fits:
                text = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in declared]
                raise ModelError(
                    f"shape {tuple(given)} is given for input {entry.name!r}, which the model declares as ({', '.join(text)})"
                )
        if any(extent < 1 for extent in given):
            raise ModelError(f"input {entry.name!r} has shape {tuple(given)}; every extent must be at least 1")
        return tuple(int(extent) for extent in given)

    def _value(self, name: str, reader: str) -> str:
        if name not in self.values:
            raise ModelError(f"{reader} reads {name!r}, which nothing computes")
        return self.values[name]

    def _add_node(self, proto: onnx.NodeProto, read: set[str]) -> None:
        title = f"node {proto.name or proto.output[0]!r}"
        inputs = [self._value(name, title) if name else None for name in proto.input]
        arrays: list[Array | None] = [None if name is None else self.builder.array(name) for name in inputs]
        node = NodeView(proto, inputs, [name in read for name in proto.output], self.opset, self.builder)
        results = self._converted(node)
        known = all(array is not None for name, array in zip(inputs, arrays, strict=True) if name is not None)
        if known and all(self.builder.array(name) is None for name in results):
            results = self._folded(proto, arrays, results)
        self.values.update((name, value) for name, value in zip(proto.output, results, strict=False) if name)

    def _folded(self, proto: onnx.NodeProto, arrays: Sequence[Array | None], results: tuple[str, ...]) -> tuple[str, ...]:
        """Constants for ``results``, if they are small: later nodes may need to know them (as shapes, say)."""
        sizes = [math.prod(self.builder.value(name).shape) for name in results]
        sizes += [array.size for array in arrays if array is not None]
        folded = fold(proto, arrays, self.opset) if max(sizes) <= _LARGEST_FOLDED else None
        if folded is None or len(folded) != len(results):
            return results
        return tuple(self.builder.constant(array, proto.name or proto.op_type) for array in folded)

    def _converted(self, node: NodeView) -> tuple[str, ...]:
        try:
            result = CONVERTERS[node.proto.op_type](node)
        except ExpressionError as error:
            raise node.error(str(error)) from None
        return (result,) if isinstance(result, str) else result


def _dtype(number: int) -> str:
    try:
        return str(helper.tensor_dtype_to_np_dtype(number).name)
    except (KeyError, ValueError, TypeError):
        return f"type {number}"


def _check_dtype(what: str, dtype: str) -> None:
    if dtype not in dtypes.NUMPY:
        raise ModelError(f"{what} is {dtype}; the supported dtypes are {', '.join(dtypes.NUMPY)}")
