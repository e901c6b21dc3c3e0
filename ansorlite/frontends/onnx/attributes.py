"""The attributes of an ONNX node, with their types checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper

from ansorlite.errors import ModelError


def title(proto: onnx.NodeProto) -> str:
    """How to name a node to a person."""
    return f"node {proto.name or (proto.output[0] if proto.output else '')!r} ({proto.op_type})"


class NodeAttributes:
    """A node, by its name and its attributes."""

    def __init__(self, proto: onnx.NodeProto) -> None:
        self.proto = proto
        self._attributes = {attribute.name: attribute for attribute in proto.attribute}

    @property
    def title(self) -> str:
        """How to name this node to a person."""
        return title(self.proto)

    def error(self, message: str) -> ModelError:
        return ModelError(f"{self.title}: {message}")

    def _attribute(self, name: str, kind: int, what: str) -> Any:
        attribute = self._attributes.get(name)
        if attribute is None:
            return None
        if attribute.type != kind:
            raise self.error(f"attribute {name!r} must be {what}")
        return helper.get_attribute_value(attribute)

    def integer(self, name: str, default: int) -> int:
        found = self._attribute(name, AttributeProto.INT, "an integer")
        return default if found is None else int(found)

    def integers(self, name: str) -> tuple[int, ...] | None:
        found = self._attribute(name, AttributeProto.INTS, "a list of integers")
        return None if found is None else tuple(int(v) for v in found)

    def number(self, name: str, default: float) -> float:
        """A number of float32, as all of ONNX's are, their defaults too: 0.01 is 0.009999999776."""
        found = self._attribute(name, AttributeProto.FLOAT, "a number")
        return float(np.float32(default if found is None else found))

    def numbers(self, name: str) -> tuple[float, ...] | None:
        found = self._attribute(name, AttributeProto.FLOATS, "a list of numbers")
        return None if found is None else tuple(float(v) for v in found)

    def text(self, name: str, default: str) -> str:
        found = self._attribute(name, AttributeProto.STRING, "a string")
        return default if found is None else found.decode(errors="replace")

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._attribute(name, AttributeProto.STRINGS, "a list of strings")
        return () if found is None else tuple(v.decode(errors="replace") for v in found)

    def tensor(self, name: str) -> onnx.TensorProto | None:
        found: onnx.TensorProto | None = self._attribute(name, AttributeProto.TENSOR, "a tensor")
        return found

    def sparse_tensor(self, name: str) -> onnx.SparseTensorProto | None:
        found: onnx.SparseTensorProto | None = self._attribute(name, AttributeProto.SPARSE_TENSOR, "a sparse tensor")
        return found
