"""A model without its weights, for those who only look at its structure."""

from __future__ import annotations

from typing import Final

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ansorlite.frontends.onnx.contrib.table import is_misplaced
from ansorlite.frontends.onnx.operators.table import DOMAIN
from ansorlite.frontends.onnx.reference import DOMAINS
from ansorlite.frontends.onnx.tensors import nbytes

#: Bytes of data up to which they stay.
_SMALL: Final = 1 << 10


def outline(model: onnx.ModelProto) -> onnx.ModelProto:
    """``model`` with an empty tensor in place of each large initializer that has as many data as its shape says, and with shapes
    for inputs and outputs that have none.

    ONNX's checker serialises and parses what it is given; of these there is nothing else for it to look at.
    """
    result = onnx.ModelProto()
    _copy(model, result, without="graph")
    _copy(model.graph, result.graph, without="initializer")
    for tensor in model.graph.initializer:
        copied = result.graph.initializer.add()
        if _is_large(tensor):
            copied.name, copied.data_type, copied.dims[:] = tensor.name, tensor.data_type, (0,)
        else:
            copied.CopyFrom(tensor)
    for entry in (*result.graph.input, *result.graph.output):
        _give_shape(entry)
    opset = max((entry.version for entry in model.opset_import if entry.domain in DOMAINS[:2]), default=0)
    for node in result.graph.node:
        if is_misplaced(node, opset):
            # The checker knows none of that name, and leaves other domains alone.
            node.domain = DOMAIN
            if all(entry.domain != DOMAIN for entry in result.opset_import):
                result.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return result


def _is_large(tensor: onnx.TensorProto) -> bool:
    size = len(tensor.raw_data)
    return size > _SMALL and min(tensor.dims, default=0) > 0 and nbytes(tensor) == size


def _give_shape(entry: onnx.ValueInfoProto) -> None:
    """Some, to a tensor that says nothing of its own: the checker wants one, and onnxruntime does not."""
    if entry.type.HasField("tensor_type"):
        entry.type.tensor_type.shape.SetInParent()


def _copy(source: Message, target: Message, without: str) -> None:
    """All fields of ``source`` but one."""
    for field, value in source.ListFields():
        if field.name == without:
            continue
        if field.is_repeated:
            getattr(target, field.name).extend(value)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            getattr(target, field.name).CopyFrom(value)
        else:
            setattr(target, field.name, value)
