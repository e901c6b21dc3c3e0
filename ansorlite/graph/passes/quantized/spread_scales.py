"""Scales of channels, shaped as operands that are broadcast."""

from __future__ import annotations

from typing import Final

from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array, Graph
from ansorlite.graph.passes.quantized.scaling import spread
from ansorlite.topi.quantized import dequantize, quantize, requantize, requantize_real

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
        spreads: dict[str, str] = {}
        for name in node.inputs[1:] if node.operator in _SCALED and rank > 1 else ():
            known = graph.constants.get(name)
            if known is not None and known.ndim == 1 and known.size > 1:
                axis = node.attribute("axis")
                spreads[name] = graph.fresh(f"{name}.{axis}of{rank}")
                constants[spreads[name]] = spread(known, axis, rank)
        nodes.append(node.reading(spreads))
    return graph.replaced(nodes, constants=constants)
