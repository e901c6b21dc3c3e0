"""Writes the nodes of standard operators that one node becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ansorlite.frontends.onnx.attributes import NodeAttributes
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.reference import DOMAINS
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.graph.describe import Value
from ansorlite.te import dtypes

#: The versions of the operators that are written.
OPSETS: Final = dict.fromkeys(DOMAINS[:2], 24)


class Writer(NodeAttributes):
    """Nodes in the place of one. They read and write the names that it does, and names of their own.

    Attributes:
        nodes: those written so far.
        attributes: of the node that they replace, as they are given.
    """

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt.proto)
        self.nodes: list[onnx.NodeProto] = []
        self.attributes: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in attempt.proto.attribute}
        self._attempt = attempt
        self._taken = {*attempt.slots, *attempt.proto.output}

    # What there is -------------------------------------------------------------------------------------------------

    def has(self, position: int) -> bool:
        """Whether an input is given."""
        return position < len(self._attempt.inputs) and self._attempt.inputs[position] is not None

    def input(self, position: int) -> str:
        """The name of an input; ``""`` if it is not given."""
        return str(self._attempt.proto.input[position]) if self.has(position) else ""

    @property
    def inputs(self) -> list[str]:
        return list(self._attempt.proto.input)

    def value(self, position: int) -> Value:
        """Shape and dtype of an input.

        Raises:
            UnsupportedError: it is not given, or these are not known.
        """
        slot = self._attempt.inputs[position] if self.has(position) else None
        if slot is None or slot.value is None:
            raise UnsupportedError(f"the shape of its input {position} is not known")
        return slot.value

    def shape(self, position: int, *ranks: int) -> tuple[int, ...]:
        """The extents of an input.

        Raises:
            UnsupportedError: they are not known.
            ModelError: there are as many as none of ``ranks`` says.
        """
        shape = self.value(position).shape
        if len(shape) not in ranks:
            raise self.error(f"its input {position} has shape {shape}; it must have {' or '.join(map(str, ranks))} dimensions")
        return shape

    def count(self, attribute: str) -> int:
        """A positive integer that must be given as an attribute.

        Raises:
            ModelError: it is not.
        """
        number = self.integer(attribute, 0)
        if number < 1:
            raise self.error(f"its attribute {attribute!r} must be a positive integer")
        return number

    def refuse(self, *attributes: str) -> None:
        """
        Raises:
            UnsupportedError: one of ``attributes``, which mean nothing where they are 0, is not.
        """
        for name in attributes:
            if self.attributes.get(name, 0):
                raise UnsupportedError(f"its attribute {name!r}")

    def wants(self, position: int) -> bool:
        """Whether anything reads a result."""
        return position < len(self._attempt.wanted) and self._attempt.wanted[position]

    def known(self, position: int) -> np.ndarray[Any, Any]:
        """What an input is.

        Raises:
            UnsupportedError: that is known only when the model runs.
        """
        slot = self._attempt.inputs[position] if self.has(position) else None
        if slot is None or not isinstance(slot.datum, np.ndarray):
            raise UnsupportedError(f"its input {position} is known only when the model runs")
        return slot.datum

    # What is written -----------------------------------------------------------------------------------------------

    def name(self, hint: str) -> str:
        """A name that nothing has."""
        number = len(self._taken)
        while f"{hint}~{number}" in self._taken:
            number += 1
        self._taken.add(f"{hint}~{number}")
        return f"{hint}~{number}"

    def several(self, operator: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Write a node with ``count`` results; attributes that are ``None`` are left out. Returns their names."""
        names = [self.name(operator) for _ in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=self._attempt.proto.name, **attributes))
        return names

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Write a node with one result. Returns its name."""
        return self.several(operator, inputs, 1, **attributes)[0]

    def give(self, position: int, name: str) -> None:
        """Make a value the node's result."""
        outputs = self._attempt.proto.output
        if position < len(outputs) and outputs[position]:
            self.nodes.append(helper.make_node("Identity", [name], [outputs[position]]))

    def constant(self, value: Any) -> str:
        """An array, or integers."""
        return self("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def scalar(self, number: float, like: int = 0) -> str:
        """A number in the dtype of an input."""
        return self.constant(dtypes.NUMPY[self.value(like).dtype].type(number))

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """0 leaves an extent as it is, and -1 takes what is left."""
        return self("Reshape", name, self.constant(np.array(shape, np.int64)))

    def cut(self, name: str, begin: int, end: int, axis: int = 0) -> str:
        """The places from ``begin`` to ``end`` of a dimension."""
        return self("Slice", name, *(self.constant(np.array([number])) for number in (begin, end, axis)))

    def unsqueezed(self, name: str, *axes: int) -> str:
        return self("Unsqueeze", name, self.constant(np.array(axes)))
