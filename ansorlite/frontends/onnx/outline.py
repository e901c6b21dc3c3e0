"""A model without its weights, for those who only look at its structure."""

from __future__ import annotations

import math
from typing import Final

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import TensorProto

#: Bytes of data up to which they stay.
_SMALL: Final = 1 << 10

#: Of common types.
_ITEMSIZES: Final = {
    TensorProto.FLOAT: 4,
    TensorProto.DOUBLE: 8,
    TensorProto.FLOAT16: 2,
    TensorProto.BFLOAT16: 2,
    TensorProto.INT8: 1,
    TensorProto.UINT8: 1,
    TensorProto.INT32: 4,
    TensorProto.INT64: 8,
}


def outline(model: onnx.ModelProto) -> onnx.ModelProto:
    """``model`` with an empty tensor in place of each large initializer that has as many data as its shape says.

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
    return result


def _is_large(tensor: onnx.TensorProto) -> bool:
    nbytes = len(tensor.raw_data)
    itemsize = _ITEMSIZES.get(tensor.data_type)
    return (
        nbytes > _SMALL
        and itemsize is not None
        and min(tensor.dims, default=0) > 0
        and math.prod(tensor.dims) * itemsize == nbytes
    )


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
