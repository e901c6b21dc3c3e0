"""Values that need no kernel: they are bytes of another value, seen in another shape or put next to each other."""

from __future__ import annotations

import math

from ansorlite.graph.graph import Graph, Node
from ansorlite.te import dtypes
from ansorlite.topi.reduction import normalized_axes
from ansorlite.topi.shape import concat, reshape, strided_slice


def is_movement(graph: Graph, node: Node) -> bool:
    """Whether ``node`` moves whole runs of bytes: a reshape, or a contiguous slice or concatenation."""
    return view_offset(graph, node) is not None or part_offsets(graph, node) is not None


def view_offset(graph: Graph, node: Node) -> int | None:
    """Byte offset at which the result lies within its input; ``None`` if it does not lie there in one run."""
    if node.operator is reshape:
        return 0
    if node.operator is not strided_slice:
        return None
    shape = graph.values[node.inputs[0]].shape
    starts, counts, steps = (node.attribute(name) for name in ("starts", "counts", "steps"))
    if any(step != 1 and count > 1 for step, count in zip(steps, counts, strict=True)):
        return None
    # One run: single elements of the outer dimensions, then a stretch of one, then whole dimensions.
    stretch = next((d for d, count in enumerate(counts) if count > 1), len(shape))
    if any(counts[d] != shape[d] for d in range(stretch + 1, len(shape))):
        return None
    offset: int = sum(start * math.prod(shape[d + 1 :]) for d, start in enumerate(starts))
    return offset * dtypes.size(graph.values[node.output].dtype)


def part_offsets(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """Byte offsets at which the inputs lie within a concatenation; ``None`` if they are not one run each."""
    if node.operator is not concat:
        return None
    value = graph.values[node.output]
    (axis,) = normalized_axes([node.attribute("axis")], len(value.shape))
    if math.prod(value.shape[:axis]) != 1:
        return None
    sizes = [graph.values[name].nbytes for name in node.inputs]
    return tuple(sum(sizes[:n]) for n in range(len(sizes)))
