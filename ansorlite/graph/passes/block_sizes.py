"""How many channels a block has: as many as a vector has floats, or more of them where only narrower numbers are convolved.

A dot product takes four bytes or two bfloat16 for each lane, and matrix units multiply a row of 64 bytes at a time: where a value
is read by convolutions of such numbers alone, blocks as long as that are read without being copied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import networkx as nx

from ansorlite.graph.graph import Graph, Node
from ansorlite.topi.shape import concat


def block_sizes(graph: Graph, convolutions: Collection[str], block: int, rows: Mapping[str, int]) -> Mapping[str, int]:
    """The channels of a block of each value that is not a constant, where it is kept in blocks at all.

    Values that something else than a convolution makes of one another have blocks of one size, so that it converts nothing; a
    convolution reads blocks of one size, and makes those of another.

    Args:
        convolutions: the outputs of those that are to compute in blocks.
        block: channels of a block where nothing is said of the dtype that is convolved.
        rows: at most so many of a dtype that matrix units multiply: a power of two times ``block``.
    """
    alike = nx.Graph()
    divisors: dict[str, set[int]] = {}
    most: dict[str, int] = {}
    for name, value in graph.values.items():
        if name not in graph.constants and len(value.shape) > 1:
            alike.add_node(name)
            divisors[name] = {value.shape[1]}
    for node in graph.nodes:
        near = [name for name in node.inputs if name in divisors] if node.output in divisors else []
        if node.output in convolutions:
            data = node.inputs[0]
            limit = rows.get(graph.values[data].dtype, block)
            for name in (data, node.output):
                most[name] = min(most.get(name, limit), limit)
            near = _grouped(graph, node, divisors)
        elif node.operator is not concat:
            near = [name for name in near if graph.values[name].shape[1] == graph.values[node.output].shape[1]]
        alike.add_edges_from((name, node.output) for name in near)
    sizes: dict[str, int] = {}
    for members in nx.connected_components(alike):
        limit = min((most[name] for name in members if name in most), default=block)
        whole = {number for name in members for number in divisors[name] if number % block == 0}
        sizes.update(dict.fromkeys(members, _largest(whole, block, limit)))
    return sizes


def _grouped(graph: Graph, node: Node, divisors: Mapping[str, set[int]]) -> list[str]:
    """What shares its blocks with the result of a convolution in groups, whose blocks are parts of groups."""
    groups = node.attribute("groups")
    if groups == 1:
        return []
    data, (outputs, depth) = node.inputs[0], graph.values[node.inputs[1]].shape[:2]
    if depth == 1 and groups == outputs:
        return [data]
    divisors[data].add(depth)
    divisors[node.output].add(outputs // groups)
    return []


def _largest(numbers: Collection[int], block: int, limit: int) -> int:
    """The most channels, a power of two times ``block``, of which all ``numbers`` are multiples."""
    size = block
    while 2 * size <= limit and all(number % (2 * size) == 0 for number in numbers):
        size *= 2
    return size
