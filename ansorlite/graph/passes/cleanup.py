"""Passes that drop what is not needed: dead nodes, work done twice, views of views."""

from __future__ import annotations

from typing import Any

import networkx as nx

from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Graph, Node, dependencies
from ansorlite.topi.shape import reshape


def eliminate_dead_nodes(graph: Graph) -> Graph:
    """Nodes that no output depends on go.

    >>> before: y = relu(x); z = exp(x); return y
    >>> after:  y = relu(x); return y
    """
    order = dependencies(graph.nodes)
    order.add_nodes_from(graph.outputs.values())
    needed = set(graph.outputs.values()).union(*(nx.ancestors(order, name) for name in set(graph.outputs.values())))
    return graph.replaced(node for node in graph.nodes if node.output in needed)


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Nodes with the same operator, inputs and attributes become one.

    >>> before: a = exp(x); b = exp(x); y = a + b
    >>> after:  a = exp(x); y = a + a
    """
    seen: dict[tuple[Operator, tuple[str, ...], tuple[tuple[str, Any], ...]], str] = {}
    same: dict[str, str] = {}
    kept = []
    for node in graph.nodes:
        inputs = tuple(same.get(name, name) for name in node.inputs)
        original = seen.setdefault((node.operator, inputs, tuple(sorted(node.attributes))), node.output)
        if original == node.output:
            kept.append(Node(node.output, node.operator, inputs, node.attributes, node.label))
        else:
            same[node.output] = original
    return graph.replaced(kept, outputs={public: same.get(name, name) for public, name in graph.outputs.items()})


def simplify_views(graph: Graph) -> Graph:
    """A reshape of a reshape reads the first one's input; a reshape to the same shape goes.

    >>> before: a = reshape(x, (6, 4)); b = reshape(a, (24,)); y = relu(b)
    >>> after:  b = reshape(x, (24,)); y = relu(b)
    """
    origin: dict[str, str] = {}
    same: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        inputs = tuple(same.get(name, name) for name in node.inputs)
        if node.operator is reshape:
            source = origin[node.output] = origin.get(inputs[0], inputs[0])
            if graph.values[source] == graph.values[node.output]:
                same[node.output] = source
                continue
            inputs = (source,)
        nodes.append(Node(node.output, node.operator, inputs, node.attributes, node.label))
    outputs = {public: same.get(name, name) for public, name in graph.outputs.items()}
    return eliminate_dead_nodes(graph.replaced(nodes, outputs=outputs))
