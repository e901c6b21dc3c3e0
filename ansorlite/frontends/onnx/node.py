"""One ONNX node as a converter sees it: inputs as values of the graph being built, attributes with their types checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from ansorlite.frontends.onnx.attributes import NodeAttributes
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Operator, Value
from ansorlite.graph.graph import Array


class UnsupportedError(Exception):
    """What there is no tensor expression for, and why. Never an answer to the user: the node is imported in another way."""


class NotKnownError(UnsupportedError):
    """An input must be known beforehand, and is not."""

    def __init__(self, position: int, name: str) -> None:
        super().__init__(f"input {position} ({name!r}) is known only while the model runs")
        self.position = position


class NodeView(NodeAttributes):
    """An ONNX node beside the graph it is converted into.

    Attributes:
        inputs: values of the graph; ``None`` where an optional input is left out.
        outputs: how many results are asked for (results left out at the end, or never read, do not count).
        opset: version of the standard operators that the model was written for.
        wanted: for each result, whether anything reads it.
        at_once: whether what is applied is computed at once, and need not be little.
    """

    def __init__(
        self,
        proto: onnx.NodeProto,
        inputs: Sequence[str | None],
        wanted: Sequence[bool],
        opset: int,
        builder: GraphBuilder,
        *,
        at_once: bool = False,
    ) -> None:
        super().__init__(proto)
        self.inputs = tuple(inputs)
        self.wanted = tuple(wanted)
        self.opset = opset
        self.builder = builder
        self.at_once = at_once

    # Inputs ---------------------------------------------------------------------------------------------------

    def has(self, position: int) -> bool:
        """Whether an input is given."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def input(self, position: int) -> str:
        """The name of a value that must be given.

        Raises:
            ModelError: it is not.
        """
        name = self.inputs[position] if position < len(self.inputs) else None
        if name is None:
            raise self.error(f"input {position} is missing")
        return name

    def value(self, position: int) -> Value:
        """Shape and dtype of an input."""
        return self.builder.value(self.input(position))

    def array(self, position: int) -> Array:
        """The array of an input that must be known now.

        Raises:
            NotKnownError: it is computed while the model runs.
        """
        array = self.builder.array(self.input(position))
        if array is None:
            raise NotKnownError(position, self.proto.input[position])
        return array

    def scalar(self, position: int) -> Any:
        """The only element, a numpy scalar, of an input that must be known now.

        Raises:
            NotKnownError: it is computed while the model runs.
            ModelError: it has no element, or several.
        """
        array = self.array(position)
        if array.size != 1:
            raise self.error(f"input {position} must be a single number, but its shape is {array.shape}")
        return array.reshape(-1)[0]

    def integers_at(self, position: int, attribute: str) -> tuple[int, ...] | None:
        """Integers that newer opsets give as an input and older ones as an attribute; ``None`` if given in neither way."""
        if self.has(position):
            return tuple(int(v) for v in self.array(position).reshape(-1))
        return self.integers(attribute)

    # Results --------------------------------------------------------------------------------------------------

    def apply(self, operator: Operator, *inputs: str, **attributes: Any) -> str:
        """A value of the graph: ``operator(*inputs, **attributes)``, labelled with this node's name."""
        return self.builder.apply(operator, *inputs, label=self.proto.name, **attributes)

    def constant(self, array: Array) -> str:
        return self.builder.constant(array, self.proto.name or self.proto.op_type.lower())

    def only_first_output(self) -> None:
        """For operators whose further results have no counterpart here.

        Raises:
            UnsupportedError: something reads one.
        """
        for position, wanted in enumerate(self.wanted):
            if wanted and position > 0:
                raise UnsupportedError(f"its result {self.proto.output[position]!r} is used")
