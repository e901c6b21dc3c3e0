"""Single nodes by the reference that comes with ONNX: at import for constants, between native segments for the rest."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import AttributeProto, TypeProto, helper, numpy_helper
from onnx.checker import ValidationError
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import InferenceError, infer_node_outputs

from ansorlite.frontends.onnx.misread import finished, fixed_dtypes, mended
from ansorlite.frontends.onnx.replaced import REPLACED
from ansorlite.graph.describe import Value
from ansorlite.te import dtypes

#: Operator sets that the reference knows; the first two are two names of one.
DOMAINS: Final = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")

#: A tensor, a sequence of tensors, or an optional one.
Datum: TypeAlias = Any

#: Elements above which a constant is not shown to shape inference, which wants small integers only.
_LARGEST_SHOWN: Final = 1 << 10

#: Elements that a constant may have which the reference makes at import.
_LARGEST_MADE: Final = 1 << 22

#: Elements up to which an array may be one of sizes.
_MOST_SIZES: Final = 64


def type_of(datum: Datum) -> TypeProto:
    """ONNX's type of a tensor or of a sequence of tensors."""
    if isinstance(datum, list | tuple):
        return helper.make_sequence_type_proto(type_of(datum[0]) if datum else TypeProto())
    return tensor_type(Value(datum.shape, datum.dtype.name)) if datum.dtype.name in dtypes.NUMPY else _exotic_type(datum)


@lru_cache(maxsize=4096)
def tensor_type(value: Value) -> TypeProto:
    """ONNX's type of a tensor; all tensors of one type have the same, which must not change."""
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtypes.NUMPY[value.dtype]), value.shape)


def _exotic_type(array: np.ndarray[Any, Any]) -> TypeProto:
    kind = onnx.TensorProto.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_type_proto(kind, array.shape)


def value_of(kind: TypeProto) -> Value | None:
    """Shape and dtype, if ``kind`` is a tensor of known shape whose dtype has arithmetic here."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
        return None
    try:
        dtype = helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type).name
    except (KeyError, ValueError, TypeError):
        return None
    return Value(tuple(dim.dim_value for dim in dims), dtype) if dtype in dtypes.NUMPY else None


def infer_types(
    node: onnx.NodeProto, opsets: Mapping[str, int], types: Mapping[str, TypeProto], known: Mapping[str, Datum]
) -> dict[str, TypeProto]:
    """The types of the node's results, as far as ONNX's own inference knows them.

    Args:
        types: input name → type.
        known: input name → what it is, for constants.
    """
    data = {
        name: numpy_helper.from_array(array, name)
        for name, array in known.items()
        if name in node.input and isinstance(array, np.ndarray) and array.size <= _LARGEST_SHOWN and array.dtype.kind in "biuf"
    }
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
        own = {name: kind for name, kind in types.items() if name in node.input}
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        return dict(infer_node_outputs(schema, node, own, data, opset_imports=imports))
    except (InferenceError, ValidationError, onnx.defs.SchemaError, RuntimeError, ValueError, KeyError):
        return {}


def without_elements(
    node: onnx.NodeProto, opsets: Mapping[str, int], types: Mapping[str, TypeProto], known: Mapping[str, Datum]
) -> list[Value] | None:
    """The node's results, those without a name left out, if none of them has elements: then nothing need compute them."""
    inferred = infer_types(node, opsets, types, known)
    values = [value_of(inferred[name]) if name in inferred else None for name in node.output if name]
    found = [value for value in values if value is not None and 0 in value.shape]
    return found if len(found) == len(values) else None


def is_small(node: onnx.NodeProto, opsets: Mapping[str, int], types: Mapping[str, TypeProto], known: Mapping[str, Datum]) -> bool:
    """Whether the reference may run the node, whose inputs are all known, at once: in little time and memory.

    What has subgraphs may loop for ever. Results must be of known, small sizes; where ONNX's inference does not tell those, the
    numbers that the node is given must be so small that no product of them, as sizes, is large.
    """
    if next(_subgraphs(node), None) is not None:
        return False
    inferred = infer_types(node, opsets, types, known)
    values = [value_of(inferred[name]) if name in inferred else None for name in node.output if name]
    if all(value is not None for value in values):
        return all(value is None or math.prod(value.shape) <= _LARGEST_MADE for value in values)
    numbers = [abs(number) for array in known.values() if _may_be_sizes(array) for number in array.reshape(-1).tolist()]
    numbers += [abs(number) for attribute in node.attribute for number in (attribute.i, attribute.f, *attribute.ints)]
    return math.prod(max(1.0, number) for number in numbers) <= _LARGEST_MADE


def _may_be_sizes(datum: Datum) -> bool:
    return isinstance(datum, np.ndarray) and datum.size <= _MOST_SIZES and datum.dtype.kind in "iuf"


def is_deterministic(node: onnx.NodeProto, opsets: Mapping[str, int]) -> bool:
    """Whether the same inputs always give the same results."""
    schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    return not schema.non_deterministic and all(is_deterministic(inner, opsets) for inner in _inner_nodes(node))


def free_names(node: onnx.NodeProto) -> tuple[str, ...]:
    """The values that the node reads: its inputs, and what its subgraphs take from around them."""
    names = dict.fromkeys(filter(None, node.input))
    for graph in _subgraphs(node):
        own = {entry.name for entry in graph.input} | {tensor.name for tensor in graph.initializer}
        own |= {sparse.values.name for sparse in graph.sparse_initializer}
        own |= {name for inner in graph.node for name in inner.output}
        read = [name for inner in graph.node for name in free_names(inner)] + [entry.name for entry in graph.output]
        names.update(dict.fromkeys(name for name in read if name not in own))
    return tuple(names)


def _subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _inner_nodes(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    for graph in _subgraphs(node):
        yield from graph.node


class ReferenceNode:
    """A node as a function of those of its inputs that are not constant.

    Args:
        types: type of each value that the node reads, as far as known.
        known: those that are constant.
    """

    def __init__(
        self, node: onnx.NodeProto, opsets: Mapping[str, int], types: Mapping[str, TypeProto], known: Mapping[str, Datum]
    ) -> None:
        names = free_names(node)
        inputs = [helper.make_value_info(name, types.get(name, TypeProto())) for name in names]
        outputs = [helper.make_value_info(name, TypeProto()) for name in node.output if name]
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        seen, more = mended(node, opsets[node.domain])
        inputs += [helper.make_value_info(name, type_of(array)) for name, array in more.items()]
        self._node, self._opsets, self._dtypes = node, opsets, fixed_dtypes(node, opsets[node.domain])
        model = helper.make_model(helper.make_graph([seen], "node", inputs, outputs), opset_imports=imports)
        self._evaluator = ReferenceEvaluator(model, new_ops=list(REPLACED))
        self._known = {name: known[name] for name in names if name in known} | more
        self.inputs = tuple(name for name in names if name not in known)

    def __call__(self, data: Sequence[Datum]) -> list[Datum]:
        """The node's results, in order; those without a name are left out."""
        given = {**self._known, **dict(zip(self.inputs, data, strict=True))}
        if any(isinstance(datum, np.ndarray) and not datum.size for datum in given.values()):
            # The reference looks at elements that are not there.
            types = {name: type_of(datum) for name, datum in given.items()}
            values = without_elements(self._node, self._opsets, types, given)
            if values:
                return [np.empty(value.shape, dtypes.NUMPY[value.dtype]) for value in values]
        # Numpy's warnings about infinities, NaNs and means of nothing: here they are values like others.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            results = self._evaluator.run(None, given)
        arrays = [np.asarray(result) if isinstance(result, np.generic | int | float) else result for result in results]
        return finished(self._node, arrays, self._dtypes)
