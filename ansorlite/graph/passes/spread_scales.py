"""Scales of channels, shaped as operands that are broadcast."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ansorlite.graph.constants import reshaped
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array, Graph
from ansorlite.topi.quantized import dequantize, quantize, requantize, requantize_real
from ansorlite.topi.reduction import normalized_axes

#: Operators whose other operands may be one number for each position along a dimension, which an attribute names.
_SCALED: Final[tuple[Operator, ...]] = (quantize, dequantize, requantize, requantize_real)


def spread_scales(graph: Graph) -> Graph:
    """Constant scales and zero points of channels get the rank of what they belong to.

    What reads them is then pointwise like any other sum or product, and is fused with what comes before it.

    >>> before: y = requantize(total, factor, zero, axis=1)              # factor (c,)
    >>> after:  y = requantize(total, reshape(factor, (1, c, 1, 1)), zero, axis=1)
    """
    constants: dict[str, Array] = dict(graph.constants)
    nodes = []
    for node in graph.nodes:
        rank = len(graph.values[node.output].shape)
        if node.operator not in _SCALED or rank < 2:
            nodes.append(node)
            continue
        (axis,) = normalized_axes([node.attribute("axis")], rank)
        inputs = list(node.inputs)
        for position, name in enumerate(inputs[1:], 1):
            known = graph.constants.get(name)
            if known is not None and known.ndim == 1 and known.size > 1:
                inputs[position] = graph.fresh(f"{name}.{axis}of{rank}")
                constants[inputs[position]] = reshaped(known, tuple(known.size if d == axis else 1 for d in range(rank)))
        nodes.append(node if inputs == list(node.inputs) else replace(node, inputs=tuple(inputs)))
    return graph.replaced(nodes, constants=constants)
