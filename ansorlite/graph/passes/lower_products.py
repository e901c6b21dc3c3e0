"""Products of float32 are computed on narrower operands, their sums in float32."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from ansorlite.graph.dependence import terms
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Graph, Node
from ansorlite.graph.passes.choosing import CHOOSING, chosen_from
from ansorlite.graph.passes.fold_constants import fold_constants
from ansorlite.topi.activations import relu
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

    What only chooses among elements on the way to products chooses among rounded ones, so that half the bytes move.

    >>> before: y = relu(matmul(x, weight))
    >>> after:  a = cast(x, "bfloat16"); y = relu(matmul(a, weight.bfloat16, result="float32"))
    >>> before: y = conv(concat(x, z), weight)
    >>> after:  a = concat(cast(x, "bfloat16"), cast(z, "bfloat16")); y = conv(a, weight.bfloat16, result="float32")
    """
    products = {node.output for node in graph.nodes if _is_product(graph, node)}
    if not products:
        return graph
    early = _early(graph, products)
    nodes: list[Node] = []
    narrow: dict[str, str] = {}

    def rounded(name: str) -> str:
        if name not in narrow:
            narrow[name] = graph.fresh(f"{name}.{dtype}")
            nodes.append(Node(narrow[name], cast, (name,), (("dtype", dtype),)))
        return narrow[name]

    for node in graph.nodes:
        if node.output in products:
            operands = tuple(map(rounded, node.inputs))
            nodes.append(Node(node.output, node.operator, operands, (*node.attributes, ("result", _WIDE)), node.label))
        elif node.output in early:
            chosen = chosen_from(node)
            inputs = (*map(rounded, chosen), *node.inputs[len(chosen) :])
            narrow[node.output] = graph.fresh(f"{node.output}.{dtype}")
            nodes.append(Node(narrow[node.output], node.operator, inputs, node.attributes, node.label))
        else:
            nodes.append(node)
    return fold_constants(graph.replaced(nodes))


def _early(graph: Graph, products: Set[str]) -> set[str]:
    """The values that are chosen among others, and that only products read, or what else is chosen so.

    A ReLU is among them where what it reads is: elsewhere whoever makes that computes it, too, before it rounds.
    """
    found: set[str] = set()
    kept = set(graph.outputs.values())
    for node in reversed(graph.nodes):
        chooses = node.operator is relu or node.operator in CHOOSING
        if chooses and node.output not in kept and graph.values[node.output].dtype == _WIDE:
            readers = {reader.output for reader in graph.consumers[node.output]}
            if readers and readers <= products | found:
                found.add(node.output)
    for node in graph.nodes:
        if node.operator is relu and node.inputs[0] not in found:
            found.discard(node.output)
    return found


def _is_product(graph: Graph, node: Node) -> bool:
    if node.operator not in _PRODUCTS or len(node.inputs) < 2:
        return False
    if any(graph.values[name].dtype != _WIDE for name in node.inputs):
        return False
    if node.operator in _CONVOLUTIONS and node.attribute("groups") == graph.values[node.inputs[0]].shape[1] > 1:
        return False
    return terms(*graph.use(node)) > 1
