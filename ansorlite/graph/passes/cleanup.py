"""Passes that drop what is not needed: dead nodes, work done twice, constants kept twice, views of views."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from ansorlite.graph.constants import first, is_splat
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array, Graph
from ansorlite.topi.shape import reshape


def eliminate_dead_nodes(graph: Graph) -> Graph:
    """Nodes that no output depends on go.

    >>> before: y = relu(x); z = exp(x); return y
    >>> after:  y = relu(x); return y
    """
    needed = set(graph.outputs.values())
    for node in reversed(graph.nodes):
        if node.output in needed:
            needed.update(node.inputs)
    return graph.replaced(node for node in graph.nodes if node.output in needed)


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Nodes with the same operator, inputs and attributes become one.

    >>> before: a = exp(x); b = exp(x); y = a + b
    >>> after:  a = exp(x); y = a + a
    """
    seen: dict[tuple[Operator, tuple[str, ...], tuple[tuple[str, Any], ...]], str] = {}
    same: dict[str, str] = {}
    kept = []
    for node in graph.nodes:
        renamed = node.reading(same)
        original = seen.setdefault((node.operator, renamed.inputs, tuple(sorted(node.attributes))), node.output)
        if original == node.output:
            kept.append(renamed)
        else:
            same[node.output] = original
    return graph.replaced(kept, same=same)


#: Elements by which constants are told apart before all of their bytes are looked at.
_GLANCE: Final = 16


def merge_equal_constants(graph: Graph) -> Graph:
    """Constants of the same bytes become one, so that what kernels prepare of them is prepared and read once.

    >>> before: a = x @ w + b1; y = a @ w + b2, where b1 and b2 are equal
    >>> after:  a = x @ w + b1; y = a @ w + b1
    """
    alike: defaultdict[Hashable, list[str]] = defaultdict(list)
    for name, array in graph.constants.items():
        alike[array.dtype.str, array.shape, is_splat(array), array.flat[:_GLANCE].tobytes()].append(name)
    originals: dict[Hashable, str] = {}
    same: dict[str, str] = {}
    for glance, names in alike.items():
        for name in names if len(names) > 1 else ():
            content = _content(graph.constants[name])
            original = originals.setdefault((glance, zlib.crc32(content.data)), name)
            if original != name and np.array_equal(content, _content(graph.constants[original])):
                same[name] = original
    return graph.replaced((node.reading(same) for node in graph.nodes), same=same)


def _content(array: Array) -> Array:
    """All bytes; of a splat, those of the one element that there is."""
    dense = np.asarray(first(array)) if is_splat(array) else np.ascontiguousarray(array)
    return dense.reshape(-1).view(np.uint8)


def simplify_views(graph: Graph) -> Graph:
    """A reshape of a reshape reads the first one's input; a reshape to the same shape goes.

    >>> before: a = reshape(x, (6, 4)); b = reshape(a, (24,)); y = relu(b)
    >>> after:  b = reshape(x, (24,)); y = relu(b)
    """
    origin: dict[str, str] = {}
    same: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        renamed = node.reading(same)
        if node.operator is reshape:
            source = origin[node.output] = origin.get(renamed.inputs[0], renamed.inputs[0])
            if graph.values[source] == graph.values[node.output]:
                same[node.output] = source
                continue
            renamed = renamed.reading({renamed.inputs[0]: source})
        nodes.append(renamed)
    return eliminate_dead_nodes(graph.replaced(nodes, same=same))
