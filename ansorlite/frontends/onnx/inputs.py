"""The inputs of a model, with the shapes that the caller gives for those that are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import TypeProto

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx.reference import tensor_type, value_of
from ansorlite.frontends.onnx.segments import Slot, empty


def open_inputs(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, Slot]:
    """Input name → value. Up to IR version 3, initializers are listed among the inputs too: those are none.

    Raises:
        ModelError: a shape is open, or given for an input that is not there or declares another one.
    """
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = [entry for entry in graph.input if entry.name not in initialized]
    unknown = sorted(set(shapes) - {entry.name for entry in inputs})
    if unknown:
        names = ", ".join(entry.name for entry in inputs)
        raise ModelError(f"a shape is given for {unknown[0]!r}, which is not an input of the model; its inputs are: {names}")
    return {entry.name: _input(entry, shapes.get(entry.name)) for entry in inputs}


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
    if value is not None and 0 in value.shape:
        return empty(entry.name, value)
    return Slot(entry.name, fixed if value is None else tensor_type(value), value=value, depends=depends)


def _shape(entry: onnx.ValueInfoProto, given: Sequence[int] | None) -> tuple[int, ...]:
    tensor = entry.type.tensor_type
    declared = list(tensor.shape.dim) if tensor.HasField("shape") else None
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
    if any(extent < 0 for extent in given):
        raise ModelError(f"input {entry.name!r} has shape {tuple(given)}; no extent may be negative")
    return tuple(int(extent) for extent in given)
