"""What depends on what, and an order in which it can be computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import networkx as nx

from ansorlite.graph.graph import Node


def dependencies(nodes: Iterable[Node]) -> nx.DiGraph:
    """Value names with an edge from each input of a node to its output."""
    graph = nx.DiGraph()
    for node in nodes:
        graph.add_node(node.output)
        graph.add_edges_from((name, node.output) for name in node.inputs)
    return graph


def ordered(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Producers before consumers, in the given order as far as that allows."""
    rank = {node.output: (position, node) for position, node in enumerate(nodes)}
    order = nx.lexicographical_topological_sort(dependencies(n for _, n in rank.values()), key=lambda name: _position(rank, name))
    return tuple(rank[name][1] for name in order if name in rank)


def _position(rank: Mapping[str, tuple[int, Node]], name: str) -> int:
    return rank[name][0] if name in rank else -1
