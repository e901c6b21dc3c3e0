"""What follows from constants only, computed at once, by the definitions that programs are compiled from."""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.errors import ExpressionError
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.graph import Array
from ansorlite.graph.passes.fold_constants import computed


def known_arrays(builder: GraphBuilder, names: Sequence[str]) -> list[Array] | None:
    """The arrays of values; ``None`` if one depends on what is given, is too much work, or cannot be computed."""
    found: dict[str, Array] = {}
    try:
        return [found[name] for name in names] if all(_compute(builder, name, found) for name in names) else None
    except ExpressionError:
        # What cannot be computed stays a node, whose own error says more.
        return None


def _compute(builder: GraphBuilder, name: str, found: dict[str, Array]) -> bool:
    """Add the array of a value, and those of all that it depends on, to ``found``."""
    if name in found:
        return True
    array, node = builder.array(name), builder.node(name)
    if array is None and node is not None and all(_compute(builder, source, found) for source in node.inputs):
        array = computed(node, [found[source] for source in node.inputs])
    if array is None:
        return False
    found[name] = array
    return True
