"""What constant weights allow: products of bytes that stay bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.topi.quantized import integer_conv, integer_matmul

#: Weights that use 7 bits: sums of two products with unsigned bytes fit into 16 bits. Quantisers make such weights
#: ("reduce_range") for processors that add so.
_SMALL: Final = 64


def describe_weights(graph: Graph) -> Graph:
    """Integer products are told that their weights are constant, and small if they are.

    >>> before: y = integer_conv(x, w, zero=z)
    >>> after:  y = integer_conv(x, w, zero=z, apart=True, most=64)       # w is a constant, and no element exceeds 64
    """
    nodes = []
    for node in graph.nodes:
        known = node.operator in (integer_conv, integer_matmul) and node.inputs[1] in graph.constants
        nodes.append(_described(node, graph.constants[node.inputs[1]], graph) if known else node)
    return graph.replaced(nodes)


def _described(node: Node, weight: Array, graph: Graph) -> Node:
    given = dict(node.attributes) | {"apart": True}
    position = 2 if node.operator is integer_conv else 3
    zero = graph.constants.get(node.inputs[position]) if len(node.inputs) > position else np.zeros((), weight.dtype)
    if zero is not None and zero.size == 1 and np.abs(weight.astype(np.int32) - int(zero.reshape(()))).max(initial=0) <= _SMALL:
        given["most"] = _SMALL
    return replace(node, attributes=tuple(given.items()))
