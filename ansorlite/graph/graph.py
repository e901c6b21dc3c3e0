"""A model as a graph: operators over named values of fixed shape and dtype. Immutable."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_
from typing import Any, TypeAlias

import numpy as np

from ansorlite.graph.describe import Description, Operator, Use, Value, describe
from ansorlite.graph.order import producers_first

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Node:
    """One use of an operator. It is known by the name of its result.

    Attributes:
        output: name of the value it computes.
        operator: a function from tensors to a tensor, of ``topi`` or in its manner.
        inputs: names of the values that it reads, in call order.
        attributes: its keyword arguments, hashable.
        label: what the model's author called it; for people.
    """

    output: str
    operator: Operator
    inputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    label: str = ""

    def attribute(self, name: str) -> Any:
        """A keyword argument that this node gives, or else the operator's default."""
        given = dict(self.attributes)
        return given[name] if name in given else inspect.signature(self.operator).parameters[name].default

    def reading(self, same: Mapping[str, str]) -> Node:
        """This node, reading in the place of its inputs what ``same`` says is equal to them."""
        inputs = tuple(same.get(name, name) for name in self.inputs)
        return self if inputs == self.inputs else replace(self, inputs=inputs)


@dataclass(frozen=True, eq=False)
class Graph:
    """A whole computation. Make one with :meth:`of`.

    Attributes:
        inputs: name → what the caller gives.
        outputs: the model's output name → the value that it is.
        nodes: producers before consumers.
        constants: name → array, read-only; one value repeated is a view with strides of 0, and takes no memory.
        values: every name above → its shape and dtype.
        descriptions: node output → facts of its operator on its inputs.
    """

    inputs: Mapping[str, Value]
    outputs: Mapping[str, str]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    values: Mapping[str, Value]
    descriptions: Mapping[str, Description]

    @staticmethod
    def of(
        inputs: Mapping[str, Value], outputs: Mapping[str, str], nodes: Iterable[Node], constants: Mapping[str, Array]
    ) -> Graph:
        """The graph of these parts; nodes may come in any order, and constants that nothing reads are dropped.

        Raises:
            ExpressionError: an operator refuses the shapes or dtypes of its inputs.
        """
        ordered = _sorted(nodes)
        used = {name for node in ordered for name in node.inputs} | set(outputs.values())
        kept = {name: array for name, array in constants.items() if name in used}
        values = dict(inputs) | {name: Value(array.shape, array.dtype.name) for name, array in kept.items()}
        descriptions = {}
        for node in ordered:
            found = describe(node.operator, tuple(values[name] for name in node.inputs), node.attributes)
            descriptions[node.output] = found
            values[node.output] = found.value
        return Graph(dict(inputs), dict(outputs), ordered, kept, values, descriptions)

    def replaced(
        self, nodes: Iterable[Node], *, constants: Mapping[str, Array] | None = None, same: Mapping[str, str] | None = None
    ) -> Graph:
        """This graph with other nodes and constants (added to those here); outputs that ``same`` has are what it says.

        Most passes find nothing in most models: then this is the very same graph.
        """
        nodes, merged = tuple(nodes), {**self.constants, **(constants or {})}
        outputs = {public: (same or {}).get(name, name) for public, name in self.outputs.items()}
        if len(nodes) == len(self.nodes) and all(map(is_, nodes, self.nodes)) and outputs == self.outputs:
            return self
        return Graph.of(self.inputs, outputs, nodes, merged)

    def use(self, node: Node) -> Use:
        """How ``node`` uses its operator."""
        return node.operator, tuple(self.values[name] for name in node.inputs), node.attributes

    @cached_property
    def producers(self) -> dict[str, Node]:
        """Value → the node that computes it."""
        return {node.output: node for node in self.nodes}

    @cached_property
    def consumers(self) -> dict[str, tuple[Node, ...]]:
        """Every value → the nodes that read it, in order."""
        found: dict[str, list[Node]] = {name: [] for name in self.values}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def fresh(self, name: str) -> str:
        """``name``, marked until nothing in this graph has it."""
        while name in self.values:
            name += "'"
        return name

    def only_consumer(self, name: str) -> Node | None:
        """The one node that reads ``name``, if there is one only and the model does not give the value out."""
        nodes = self.consumers[name]
        return nodes[0] if len(nodes) == 1 and name not in self.outputs.values() else None


def _sorted(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Producers before consumers, in the given order as far as that allows."""
    nodes = tuple(nodes)
    if _is_sorted(nodes):
        return nodes
    computed = {node.output: node for node in nodes}
    return tuple(computed[name] for name in producers_first({name: node.inputs for name, node in computed.items()}))


def _is_sorted(nodes: Sequence[Node]) -> bool:
    """Whether no node reads what comes later, as passes mostly leave it; sorting takes far longer to find that."""
    later = {node.output for node in nodes}
    distinct = len(later) == len(nodes)
    for node in nodes:
        if not later.isdisjoint(node.inputs):
            return False
        later.discard(node.output)
    return distinct


#: A pass: the same computation, better arranged.
Pass: TypeAlias = Callable[[Graph], Graph]
