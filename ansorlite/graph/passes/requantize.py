"""Sums of integers go to bytes in one step."""

from __future__ import annotations

import numpy as np

from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.graph.passes.scaling import scaling_of
from ansorlite.topi.quantized import dequantize, quantize, requantize


def requantize_sums(graph: Graph) -> Graph:
    """Sums that are dequantised only to be quantised again are multiplied by the one scale over the other.

    What is rounded differs by two roundings of float32 from what was: by a quantum, and only of what lies that close to the
    middle between two integers. It is what ``QLinearConv`` and ``QLinearMatMul`` are read as, to the bit.

    >>> before: y = quantize(dequantize(total, s), t, z)                  # total in int32
    >>> after:  y = requantize(total, s / t, z)
    """
    constants: dict[str, Array] = dict(graph.constants)
    nodes = []
    for node in graph.nodes:
        after = scaling_of(node, graph.constants) if node.operator is quantize else None
        producer = graph.producers.get(node.inputs[0]) if after is not None else None
        before = scaling_of(producer, graph.constants) if producer is not None and producer.operator is dequantize else None
        if after is None or producer is None or before is None or not after.uniform or before.zero is not None:
            nodes.append(node)
            continue
        factor, zero = graph.fresh(f"{node.output}.factor"), graph.fresh(f"{node.output}.zero")
        quotient = np.asarray(before.scale / after.scale)
        dtypes = graph.values[producer.inputs[0]].dtype, graph.values[node.output].dtype
        if dtypes[0] != "int32" or not np.isfinite(quotient).all():
            nodes.append(node)
            continue
        constants[factor], constants[zero] = quotient, np.asarray(after.offset, dtypes[1])
        nodes.append(Node(node.output, requantize, (producer.inputs[0], factor, zero), (("axis", before.axis),), node.label))
    return eliminate_dead_nodes(graph.replaced(nodes, constants=constants))
