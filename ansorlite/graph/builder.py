"""Writing a graph down, value by value, with shapes known at every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansorlite.graph.describe import Operator, Value, describe
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.limits import check_size


class GraphBuilder:
    """Collects inputs, constants and nodes; :meth:`finish` gives the graph."""

    def __init__(self) -> None:
        self._inputs: dict[str, Value] = {}
        self._constants: dict[str, Array] = {}
        self._known: dict[str, Array] = {}
        self._nodes: dict[str, Node] = {}
        self._values: dict[str, Value] = {}
        #: Of names that are taken: the least number behind them that may be free. Values stay: no smaller one will be free again.
        self._numbers: dict[str, int] = {}

    def input(self, name: str, value: Value) -> str:
        """A value that the caller will give."""
        self._inputs[name] = value
        self._values[name] = value
        return name

    @property
    def size(self) -> int:
        """How many nodes there are so far."""
        return len(self._nodes)

    def is_input(self, name: str) -> bool:
        """Whether a value is one that the caller will give."""
        return name in self._inputs

    def constant(self, array: Array, name: str = "constant") -> str:
        """A value known now. The array is not copied, and must not change any more."""
        name = self._unique(name)
        self._constants[name] = array
        self._values[name] = Value(array.shape, array.dtype.name)
        return name

    def apply(self, operator: Operator, *inputs: str, label: str = "", **attributes: Any) -> str:
        """The value ``operator(*inputs, **attributes)``.

        Raises:
            ExpressionError: the operator refuses the inputs or attributes, or its result is too large for any machine.
        """
        items = tuple(attributes.items())
        value = describe(operator, tuple(self._values[name] for name in inputs), items).value
        check_size(value.shape, value.dtype)
        name = self._unique(label or getattr(operator, "__name__", "value"))
        self._nodes[name] = Node(name, operator, inputs, items, label)
        self._values[name] = value
        return name

    def value(self, name: str) -> Value:
        """Shape and dtype of a value."""
        return self._values[name]

    def learn(self, name: str, array: Array) -> None:
        """A value that is computed is known to be ``array``; it stays computed."""
        if name not in self._constants:
            self._known[name] = array

    def array(self, name: str) -> Array | None:
        """The array of a value that is known; ``None`` for others that are computed or given."""
        return self._constants.get(name, self._known.get(name))

    def node(self, name: str) -> Node | None:
        """What computes a value; ``None`` for a constant, and for what is given."""
        return self._nodes.get(name)

    def finish(self, outputs: Mapping[str, str]) -> Graph:
        """The graph that gives ``outputs``: output name → value."""
        return Graph.of(self._inputs, outputs, list(self._nodes.values()), self._constants)

    def _unique(self, name: str) -> str:
        if name not in self._values:
            return name
        number = self._numbers.get(name, 2)
        while f"{name}~{number}" in self._values:
            number += 1
        self._numbers[name] = number + 1
        return f"{name}~{number}"
