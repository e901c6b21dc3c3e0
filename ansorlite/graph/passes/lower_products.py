"""Products of float32 are computed on narrower operands, their sums in float32."""

from __future__ import annotations

from typing import Final

from ansorlite.graph.dependence import terms
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Graph, Node
from ansorlite.graph.passes.fold_constants import fold_constants
from ansorlite.topi.conv import conv, conv_transpose
from ansorlite.topi.einsum import einsum
from ansorlite.topi.elementwise import cast
from ansorlite.topi.matmul import gemm, matmul

_CONVOLUTIONS: Final[tuple[Operator, ...]] = (conv, conv_transpose)
_PRODUCTS: Final[tuple[Operator, ...]] = (matmul, gemm, einsum, *_CONVOLUTIONS)
_WIDE: Final = "float32"


def lower_products(graph: Graph, dtype: str) -> Graph:
    """Matrix products and convolutions of float32 round their operands to ``dtype``; what they sum, and all else, stays float32.

    A convolution of each channel by itself is none of them: it multiplies little, and no matrix unit does it. Nor is what
    multiplies and sums nothing, as positions and frequencies are multiplied: 8 bits are too few for these, and nothing is gained.

    >>> before: y = relu(matmul(x, weight))
    >>> after:  a = cast(x, "bfloat16"); y = relu(matmul(a, weight.bfloat16, result="float32"))
    """
    nodes: list[Node] = []
    narrow: dict[str, str] = {}
    for node in graph.nodes:
        if not _is_product(graph, node):
            nodes.append(node)
            continue
        for name in node.inputs:
            if name not in narrow:
                narrow[name] = graph.fresh(f"{name}.{dtype}")
                nodes.append(Node(narrow[name], cast, (name,), (("dtype", dtype),)))
        operands = tuple(narrow[name] for name in node.inputs)
        nodes.append(Node(node.output, node.operator, operands, (*node.attributes, ("result", _WIDE)), node.label))
    return fold_constants(graph.replaced(nodes)) if narrow else graph


def _is_product(graph: Graph, node: Node) -> bool:
    if node.operator not in _PRODUCTS or len(node.inputs) < 2:
        return False
    if any(graph.values[name].dtype != _WIDE for name in node.inputs):
        return False
    if node.operator in _CONVOLUTIONS and node.attribute("groups") == graph.values[node.inputs[0]].shape[1] > 1:
        return False
    return terms(*graph.use(node)) > 1
