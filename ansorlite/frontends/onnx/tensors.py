"""Every tensor in a model, wherever it is: what it says of itself must be true before anyone reads its data.

ONNX's checker looks at less, and each of its versions at something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from ansorlite.errors import ModelError
from ansorlite.graph.graph import Array

#: Bits of an element of those types of which several share a byte.
_BITS: Final = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}

#: Types whose elements are two numbers.
_PAIRS: Final = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)

#: Bytes that a sparse tensor may have as a dense one: its few entries say nothing of how large that is.
_LARGEST_DENSE: Final = 1 << 30


def tensors(model: onnx.ModelProto) -> Iterator[TensorProto]:
    """All constants, of subgraphs, of attributes and of functions too; a sparse one is two of them."""
    yield from _in_graph(model.graph)
    for function in model.functions:
        yield from _in_attributes(function.attribute_proto)
        yield from _in_nodes(function.node)


def _in_graph(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _in_nodes(graph.node)


def _in_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        yield from _in_attributes(node.attribute)


def _in_attributes(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        yield from _both(attribute, "t", "tensors")
        for sparse in _both(attribute, "sparse_tensor", "sparse_tensors"):
            yield from (sparse.values, sparse.indices)
        for graph in _both(attribute, "g", "graphs"):
            yield from _in_graph(graph)


def _both(attribute: AttributeProto, one: str, several: str) -> list[Any]:
    return [*([getattr(attribute, one)] if attribute.HasField(one) else ()), *getattr(attribute, several)]


def nbytes(tensor: TensorProto) -> int | None:
    """How many bytes of data the tensor's shape and type ask for; ``None`` for strings.

    Raises:
        ModelError: a negative extent, or a type that there is not.
    """
    if any(extent < 0 for extent in tensor.dims):
        raise ModelError(f"tensor {tensor.name!r} has shape {tuple(tensor.dims)}; no extent may be negative")
    if tensor.data_type == TensorProto.STRING:
        return None
    try:
        bits = _BITS.get(TensorProto.DataType.Name(tensor.data_type))
        bits = 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize if bits is None else bits
    except (KeyError, ValueError, TypeError):
        raise ModelError(f"tensor {tensor.name!r} is of type {tensor.data_type}, which is none of ONNX's") from None
    return int(-(-math.prod(tensor.dims) * bits // 8))


def check_tensor(tensor: TensorProto, what: str) -> None:
    """Whether a tensor whose data are in the model has as many of them as its shape and type say.

    Raises:
        ModelError: it has not.
    """
    expected = nbytes(tensor)
    if tensor.HasField("raw_data") and expected is not None:
        found, unit = len(tensor.raw_data), "bytes"
    else:
        field = helper.tensor_dtype_to_field(tensor.data_type)
        found, unit = len(getattr(tensor, field)), f"entries in {field}"
        shared = TensorProto.DataType.Name(tensor.data_type) in _BITS
        # Those that share bytes are written down byte by byte.
        count = math.prod(tensor.dims) * (2 if tensor.data_type in _PAIRS else 1)
        expected = expected if shared else count
    if found != expected:
        raise ModelError(
            f"{what}: the data of tensor {tensor.name!r} do not fit its shape and type: {tuple(tensor.dims)} of "
            f"{TensorProto.DataType.Name(tensor.data_type)} needs {expected} {unit}, and there are {found}"
        )


def tensor_array(tensor: TensorProto) -> Array:
    """The array of a tensor.

    Raises:
        ModelError: its data do not fit its shape and type.
    """
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"the data of tensor {tensor.name!r} do not fit its shape and type: {error}") from None


def dense_array(sparse: SparseTensorProto) -> Array:
    """A sparse tensor with all its zeros.

    Raises:
        ModelError: its indices are not places in it, or it would be too large.
    """
    name, shape = sparse.values.name, tuple(sparse.dims)
    if any(extent < 1 for extent in shape):
        raise ModelError(f"sparse tensor {name!r} has shape {shape}; every extent must be at least 1")
    values, indices = tensor_array(sparse.values), tensor_array(sparse.indices)
    size = math.prod(shape)
    if size * values.dtype.itemsize > _LARGEST_DENSE:
        raise ModelError(
            f"sparse tensor {name!r} of shape {shape} ({values.dtype}) takes {size * values.dtype.itemsize / 2**30:.4g} GiB "
            f"with its zeros, and the most is {_LARGEST_DENSE >> 30} GiB"
        )
    if values.ndim != 1 or indices.dtype != np.int64 or indices.shape not in ((len(values),), (len(values), len(shape))):
        raise ModelError(f"sparse tensor {name!r}: values {values.shape} and indices {indices.shape} do not fit shape {shape}")
    bounds = np.array(shape if indices.ndim == 2 else size)
    if ((indices < 0) | (indices >= bounds)).any():
        raise ModelError(f"sparse tensor {name!r} has an index outside of its shape {shape}")
    result = np.zeros(shape, values.dtype)
    result.reshape(-1)[indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)] = values
    return result
