"""The inputs and outputs of a model, with what the caller says of the shapes that are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import onnx
from onnx import TypeProto, helper

from ansorlite.errors import ExpressionError, ModelError
from ansorlite.frontends.onnx.reference import tensor_type, value_of
from ansorlite.frontends.onnx.segments import Slot, empty
from ansorlite.graph.dimensions import Dim, OpenValue
from ansorlite.graph.limits import check_size
from ansorlite.te import dtypes

#: What exporters write for the name of a dimension that has none. Two such dimensions need not be equal.
_NAMELESS: Final = frozenset(("", "?", "-1", "None"))


def open_inputs(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, Slot]:
    """Input name → value. Up to IR version 3, initializers are listed among the inputs too: those are none.

    Raises:
        ModelError: a shape is open, or given for an input that is not there or declares another one.
    """
    return {entry.name: _input(entry, shapes.get(entry.name)) for entry in _entries(graph, shapes)}


def open_values(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[Dim]]) -> dict[str, OpenValue]:
    """Input name → shape, with names for open dimensions, and dtype.

    Args:
        shapes: for each dimension its extent, or a name that leaves it open. Open dimensions that nobody names, extents of -1
            and names like ``?`` among them, are called by their input and place: ``x.0``.

    Raises:
        ModelError: a shape is given for an input that is not there or declares another one.
    """
    return {entry.name: _open_value(entry, shapes.get(entry.name)) for entry in _entries(graph, shapes)}


def _entries(graph: onnx.GraphProto, shapes: Mapping[str, object]) -> list[onnx.ValueInfoProto]:
    initialized = {tensor.name for tensor in graph.initializer} | {sparse.values.name for sparse in graph.sparse_initializer}
    inputs = [entry for entry in graph.input if entry.name not in initialized]
    unknown = sorted(set(shapes) - {entry.name for entry in inputs})
    if unknown:
        names = ", ".join(entry.name for entry in inputs)
        raise ModelError(f"a shape is given for {unknown[0]!r}, which is not an input of the model; its inputs are: {names}")
    return inputs


def _open_value(entry: onnx.ValueInfoProto, given: Sequence[Dim] | None) -> OpenValue:
    if not entry.type.HasField("tensor_type"):
        return OpenValue(None, None)
    try:
        dtype = helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type).name
    except (KeyError, ValueError, TypeError):
        dtype = ""
    declared = _declared(entry)
    if given is not None:
        _check(entry, declared, given)
    shape = tuple(given) if given is not None else declared
    return OpenValue(shape, dtype if dtype in dtypes.NUMPY else None)


def _declared(entry: onnx.ValueInfoProto) -> tuple[Dim, ...] | None:
    """The shape that the model states; ``None`` if it does not even say how many dimensions there are."""
    tensor = entry.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(_dim(dim, f"{entry.name}.{position}") for position, dim in enumerate(tensor.shape.dim))


def _dim(dim: onnx.TensorShapeProto.Dimension, own: str) -> Dim:
    """Its extent or its name; ``own``, if it is open and has no name that it could share with others."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return own if dim.dim_param in _NAMELESS else str(dim.dim_param)


def _input(entry: onnx.ValueInfoProto, given: Sequence[int] | None) -> Slot:
    depends = frozenset([entry.name])
    if not entry.type.HasField("tensor_type"):
        return Slot(entry.name, entry.type, depends=depends)
    fixed = TypeProto()
    fixed.CopyFrom(entry.type)
    fixed.tensor_type.ClearField("shape")
    shape = fixed.tensor_type.shape
    shape.SetInParent()
    for extent in _shape(entry, given):
        shape.dim.add().dim_value = extent
    value = value_of(fixed)
    if value is not None:
        try:
            check_size(value.shape, value.dtype)
        except ExpressionError as error:
            raise ModelError(f"input {entry.name!r}: {error}") from None
    if value is not None and 0 in value.shape:
        return empty(entry.name, value)
    return Slot(entry.name, fixed if value is None else tensor_type(value), value=value, depends=depends)


def _shape(entry: onnx.ValueInfoProto, given: Sequence[int] | None) -> tuple[int, ...]:
    declared = _declared(entry)
    if given is not None:
        _check(entry, declared, given)
        return tuple(int(extent) for extent in given)
    cure = f'give it with shapes={{"{entry.name}": (...)}}'
    if declared is None:
        raise ModelError(f"the shape of input {entry.name!r} is open; {cure}")
    for position, dim in enumerate(declared):
        if isinstance(dim, str):
            raise ModelError(f"dimension {position} ({dim!r}) of input {entry.name!r} is open; {cure}")
    _check(entry, declared, declared)
    return tuple(dim for dim in declared if isinstance(dim, int))


def _check(entry: onnx.ValueInfoProto, declared: tuple[Dim, ...] | None, given: Sequence[Dim]) -> None:
    """Whether a shape is one that the model declares."""
    if declared is not None and (
        len(declared) != len(given)
        or any(isinstance(dim, int) and dim != extent for dim, extent in zip(declared, given, strict=True))
    ):
        text = ", ".join(map(str, declared))
        raise ModelError(f"shape {tuple(given)} is given for input {entry.name!r}, which the model declares as ({text})")
    if any(not isinstance(extent, str) and extent < 0 for extent in given):
        raise ModelError(f"input {entry.name!r} has shape {tuple(given)}; no extent may be negative")


def check_output(entry: onnx.ValueInfoProto, slot: Slot) -> None:
    """Types that do not fit each other within a model show where it says what it gives.

    Raises:
        ModelError: the model declares another dtype for its output than it computes.
    """
    declared = value_of(helper.make_tensor_type_proto(entry.type.tensor_type.elem_type, ()))
    if declared is not None and slot.value is not None and declared.dtype != slot.value.dtype:
        of = f"output {entry.name!r} is declared as {declared.dtype}"
        raise ModelError(f"{of}, but is {slot.value.dtype} by the types of what it is computed from")
