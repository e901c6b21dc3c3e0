"""Scales of a convolution's or matrix product's output move into its constant weight."""

from __future__ import annotations

import math

import numpy as np

from ansorlite.graph.constants import combine, reshaped
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.passes.affine import by_constant
from ansorlite.topi.conv import conv, conv_transpose
from ansorlite.topi.elementwise import multiply
from ansorlite.topi.matmul import gemm, matmul


def fold_scales_into_weights(graph: Graph) -> Graph:
    """A scale for each channel of a convolution, or for each column of a matrix product, goes into the weight.

    With batch normalisation written as scale and shift, only the shift stays: a bias.

    >>> before: a = conv(x, weight); y = a * scale
    >>> after:  y = conv(x, weight * scale)
    """
    constants = dict(graph.constants)
    nodes = {node.output: node for node in graph.nodes}
    for node in graph.nodes:
        found = by_constant(graph, node, constants) if node.operator is multiply else None
        producer = nodes.get(found[0]) if found else None
        if found is None or producer is None or graph.only_consumer(producer.output) is not node:
            continue
        weight = constants.get(producer.inputs[1]) if len(producer.inputs) == 2 else None
        scale = None if weight is None else _scale_of_weight(graph, producer, weight, found[1])
        if weight is None or scale is None:
            continue
        name = graph.fresh(f"{producer.inputs[1]}*{node.output}")
        constants[name] = combine(np.multiply, weight, scale)
        del nodes[producer.output]
        nodes[node.output] = Node(node.output, producer.operator, (producer.inputs[0], name), producer.attributes, producer.label)
    return graph.replaced(nodes.values(), constants=constants)


def _scale_of_weight(graph: Graph, producer: Node, weight: Array, scale: Array) -> Array | None:
    """``scale`` of the producer's output, shaped to multiply its weight; ``None`` if the weight cannot take it up."""
    result = graph.values[producer.output].shape
    if producer.operator in (conv, conv_transpose):
        channel, dimension = 1, 0 if producer.operator is conv else 1
        if producer.operator is conv_transpose and producer.attribute("groups") != 1:
            return None
    elif producer.operator is gemm:
        channel, dimension = 1, 0 if producer.attribute("transpose_b") else 1
    elif producer.operator is matmul and weight.ndim >= 2:
        channel, dimension = len(result) - 1, weight.ndim - 1
    else:
        return None
    padded = (1,) * (len(result) - scale.ndim) + scale.shape
    if math.prod(padded) != padded[channel]:
        return None
    return reshaped(scale, tuple(padded[channel] if d == dimension else 1 for d in range(weight.ndim)))
