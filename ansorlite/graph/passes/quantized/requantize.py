"""Sums go to bytes in one step, and no further than they need to."""

from __future__ import annotations

import numpy as np

from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.graph.passes.quantized.scaling import scaling_of
from ansorlite.topi.elementwise import add
from ansorlite.topi.quantized import dequantize, quantize, requantize, requantize_real, saturate


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
        after = scaling_of(node, quantize, graph.constants)
        producer = graph.producers.get(node.inputs[0]) if after is not None else None
        before = scaling_of(producer, dequantize, graph.constants)
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


def quantize_sums(graph: Graph) -> Graph:
    """Sums of two dequantised values, as residual networks have them, are made in units of the result: nothing is divided.

    As above, what is rounded differs by a few roundings of float32 from what was.

    >>> before: y = quantize(dequantize(a, s) + dequantize(b, t), u, z)
    >>> after:  y = saturate(dequantize(a, s / u) + dequantize(b, t / u), z)
    """
    constants: dict[str, Array] = dict(graph.constants)
    rank = {node.output: position for position, node in enumerate(graph.nodes)}
    nodes: list[Node] = []
    for node in graph.nodes:
        after = scaling_of(node, quantize, graph.constants)
        total = graph.producers.get(node.inputs[0]) if after is not None and after.uniform else None
        if after is None or total is None or total.operator is not add or graph.only_consumer(total.output) is not node:
            nodes.append(node)
            continue
        parts = [graph.producers.get(name) for name in total.inputs]
        found = [(part, scaling_of(part, dequantize, graph.constants)) for part in parts]
        terms = [(part, scaling) for part, scaling in found if part is not None and scaling is not None]
        quotients = [np.asarray(scaling.scale / after.scale) for _, scaling in terms]
        if len(terms) < len(total.inputs) or not all(np.isfinite(quotient).all() for quotient in quotients):
            nodes.append(node)
            continue
        made = {}
        for number, ((part, scaling), quotient) in enumerate(zip(terms, quotients, strict=True)):
            name, scale = (graph.fresh(f"{node.output}.{what}{number}") for what in ("term", "scale"))
            constants[scale] = quotient if scaling.scale.ndim else quotient.reshape(graph.values[part.inputs[1]].shape)
            made[name] = Node(name, dequantize, (part.inputs[0], scale, *part.inputs[2:]), part.attributes, part.label)
        # The sum is fused with the term that comes last: of the two, that is to be what is computed last.
        nodes += sorted(made.values(), key=lambda term: rank.get(term.inputs[0], -1))
        sum_, zero = graph.fresh(f"{node.output}.sum"), graph.fresh(f"{node.output}.zero")
        constants[zero] = np.asarray(after.offset, graph.values[node.output].dtype)
        nodes.append(Node(sum_, add, tuple(made), total.attributes, total.label))
        nodes.append(Node(node.output, saturate, (sum_, zero), (), node.label))
    return eliminate_dead_nodes(graph.replaced(nodes, constants=constants))


def skip_bytes(graph: Graph) -> Graph:
    """Sums that are requantised only to be dequantised are rounded and limited as floats: the same numbers, fewer conversions.

    Where a later value is read beside them, that one is fused with the reader, and these are stored, in bytes.

    >>> before: y = dequantize(requantize(total, f, z), s, z)
    >>> after:  y = requantize_real(total, f, z, z, s)
    """
    constants: dict[str, Array] = dict(graph.constants)
    rank = {node.output: position for position, node in enumerate(graph.nodes)}
    nodes = []
    for node in graph.nodes:
        scaling = scaling_of(node, dequantize, graph.constants)
        producer = graph.producers.get(node.inputs[0]) if scaling is not None and scaling.uniform else None
        if scaling is None or producer is None or producer.operator is not requantize:
            nodes.append(node)
            continue
        alone = graph.only_consumer(producer.output) is node
        reader = graph.only_consumer(node.output)
        stored = reader is not None and max(reader.inputs, key=lambda name: rank.get(name, -1)) != node.output
        if not alone or stored:
            nodes.append(node)
            continue
        shift, scale = graph.fresh(f"{node.output}.shift"), graph.fresh(f"{node.output}.scale")
        constants[shift], constants[scale] = np.asarray(scaling.offset, np.int32), scaling.scale
        inputs = (*producer.inputs, shift, scale)
        nodes.append(Node(node.output, requantize_real, inputs, producer.attributes, producer.label))
    return eliminate_dead_nodes(graph.replaced(nodes, constants=constants))
