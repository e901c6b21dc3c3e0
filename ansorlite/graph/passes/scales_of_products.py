"""Scales of a matrix product's operands are scales of the product."""

from __future__ import annotations

import numpy as np

from ansorlite.graph.constants import combine, first, is_splat
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.passes.affine import by_constant
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.topi.elementwise import multiply
from ansorlite.topi.matmul import gemm, matmul


def scale_products(graph: Graph) -> Graph:
    """Operands that are all multiplied by one number leave that to the product: where it is, it costs next to nothing.

    Exported attention scales queries and keys by the root of what the scores are to be scaled by.

    >>> before: a = q * 0.35; b = k * 0.35; s = matmul(a, b)
    >>> after:  t = matmul(q, k); s = t * (0.35 * 0.35)
    """
    constants: dict[str, Array] = dict(graph.constants)
    nodes: list[Node] = []
    for node in graph.nodes:
        found = {name: scaled for name in node.inputs if (scaled := _scale(graph, node, name)) is not None}
        if not found:
            nodes.append(node)
            continue
        product, scale = (graph.fresh(f"{node.output}.{part}") for part in ("product", "scale"))
        factors = [found[name][1] for name in node.inputs if name in found]
        constants[scale] = factors[0] if len(factors) == 1 else combine(np.multiply, *factors)
        inputs = tuple(found[name][0] if name in found else name for name in node.inputs)
        nodes.append(Node(product, node.operator, inputs, node.attributes, node.label))
        nodes.append(Node(node.output, multiply, (product, scale)))
    return eliminate_dead_nodes(graph.replaced(nodes, constants=constants))


def _scale(graph: Graph, node: Node, name: str) -> tuple[str, Array] | None:
    """What ``name``, an operand of the product ``node``, is without its scale; and that, as an array of no dimensions."""
    producer = graph.producers.get(name)
    if node.operator not in (matmul, gemm) or producer is None or producer.operator is not multiply:
        return None
    if graph.values[name].dtype in ("float16", "bfloat16"):
        # Their products may overflow before the scale, and are rounded elsewhere.
        return None
    found = by_constant(graph, producer, dict(graph.constants))
    if found is None or not is_splat(found[1]) or graph.only_consumer(name) is not node:
        return None
    return found[0], np.asarray(first(found[1]))
