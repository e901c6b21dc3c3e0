"""Constant folding: what depends on constants only is computed now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ansorlite import te
from ansorlite.graph.constants import reshaped
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.topi.shape import reshape

#: Operations, and elements read or written, up to which a value is folded: beyond, the compiled program is faster at it.
_MOST_WORK: Final = 1 << 28

#: Bytes that folding may add for one value; larger ones stay computed if folding makes them larger than their inputs.
_GROWTH: Final = 1 << 20


def fold_constants(graph: Graph, *, keep: frozenset[Operator] = frozenset()) -> Graph:
    """Nodes whose inputs are all constant become constants, unless that makes a small constant a huge one.

    Args:
        keep: operators that stay as they are.

    >>> before: a = exp(weight); y = x * a
    >>> after:  y = x * a                     # a is a constant
    """
    constants = dict(graph.constants)
    nodes = []
    for node in graph.nodes:
        arrays = [constants[name] for name in node.inputs if name in constants]
        known = len(arrays) == len(node.inputs) > 0 and node.operator not in keep
        worth_it = known and _worth_it(graph, node, arrays)
        folded = computed(node, arrays) if worth_it else None
        if folded is None:
            nodes.append(node)
        else:
            constants[node.output] = folded
    return graph.replaced(nodes, constants=constants)


def _worth_it(graph: Graph, node: Node, arrays: list[Array]) -> bool:
    return node.operator is reshape or graph.values[node.output].nbytes <= max(_GROWTH, sum(array.nbytes for array in arrays))


def computed(node: Node, arrays: Sequence[Array]) -> Array | None:
    """What ``node`` gives for ``arrays``; ``None`` if that is too much work."""
    if node.operator is reshape:
        return reshaped(arrays[0], tuple(node.attribute("shape")))
    inputs = [te.placeholder(array.shape, array.dtype.name) for array in arrays]
    dag = ComputeDAG.of([*inputs, node.operator(*inputs, **dict(node.attributes))])
    elements = sum(math.prod(tensor.shape) for tensor in dag.tensors)
    return evaluate(dag, list(arrays))[0] if max(dag.flops, elements) <= _MOST_WORK else None
