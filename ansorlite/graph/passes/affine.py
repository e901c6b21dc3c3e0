"""Chains of scales and shifts by constants become one scale and one shift."""

from __future__ import annotations

import numpy as np

from ansorlite.graph.constants import combine, first, is_splat
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.te import dtypes
from ansorlite.topi.elementwise import add, multiply, subtract


def by_constant(graph: Graph, node: Node, constants: dict[str, Array]) -> tuple[str, Array] | None:
    """(variable, constant) of a float ``add``, ``multiply`` or ``subtract`` that keeps the variable's shape."""
    if node.operator not in (add, multiply, subtract) or not dtypes.is_float(graph.values[node.output].dtype):
        return None
    a, b = node.inputs
    if b not in constants and a in constants and node.operator is not subtract:
        a, b = b, a
    if a in constants or b not in constants or graph.values[a] != graph.values[node.output]:
        return None
    return a, constants[b]


def combine_affine(graph: Graph) -> Graph:
    """Scales and shifts of one value by constants become at most one scale and then one shift; neutral ones go.

    Batch normalisation, followed by a learned scale and shift, becomes one multiplication and one addition.

    >>> before: a = x * c1; b = a + c2; c = b * c3; y = c + c4
    >>> after:  a = x * (c1 * c3); y = a + (c2 * c3 + c4)
    """
    sweep = _Sweep(graph)
    for node in graph.nodes:
        sweep.place(node)
    return eliminate_dead_nodes(graph.replaced(sweep.nodes.values(), constants=sweep.constants, same=sweep.same))


class _Sweep:
    """One walk over a graph's nodes, producers first.

    Attributes:
        nodes: output → the node that computes it from now on.
        constants: those of the graph, and the new ones.
        same: a value that needs no node any more → the value it equals.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: dict[str, Node] = {}
        self.constants: dict[str, Array] = dict(graph.constants)
        self.same: dict[str, str] = {}

    def place(self, node: Node) -> None:
        """Take ``node`` in, joined with the scale or shift that it directly follows."""
        self.nodes.pop(node.output, None)
        found = by_constant(self.graph, node, self.constants)
        if found is None:
            self.nodes[node.output] = node.reading(self.same)
            return
        variable, constant = found
        operator = multiply if node.operator is multiply else add
        if node.operator is subtract:
            constant = combine(np.negative, constant)
        previous = self.nodes.get(variable)
        inner = by_constant(self.graph, previous, self.constants) if previous else None
        alone = self.graph.only_consumer(variable) is not None
        if previous is not None and inner is not None and alone and previous.operator is operator:
            joined = combine(np.multiply if operator is multiply else np.add, inner[1], constant)
            self.place(self._node(node, operator, inner[0], joined))
        elif previous is not None and inner is not None and alone and operator is multiply:
            self.place(self._node(previous, multiply, inner[0], constant))
            self.place(self._node(node, add, previous.output, combine(np.multiply, inner[1], constant)))
        elif is_splat(constant) and first(constant) == (1 if operator is multiply else 0):
            self.same[node.output] = self.same.get(variable, variable)
        else:
            self.nodes[node.output] = self._node(node, operator, self.same.get(variable, variable), constant)

    def _node(self, node: Node, operator: Operator, variable: str, constant: Array) -> Node:
        """``node`` made into ``operator(variable, constant)``."""
        name = self.graph.fresh(f"{node.output}.{'scale' if operator is multiply else 'shift'}")
        self.constants[name] = constant
        return Node(node.output, operator, (variable, name), label=node.label)
