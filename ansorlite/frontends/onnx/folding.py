"""What follows from constants only, computed at once, by the definitions that programs are compiled from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.errors import ExpressionError
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array, Node
from ansorlite.graph.passes.fold_constants import computed

#: Elements up to which an array is one of the shapes that models compute with, in the same way again and again.
_SMALL: Final = 16

#: A small array: shape, dtype and bytes.
_Content: TypeAlias = tuple[tuple[int, ...], np.dtype[Any], bytes]


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
        array = _computed(node, [found[source] for source in node.inputs])
    if array is None:
        return False
    found[name] = array
    return True


def _computed(node: Node, arrays: Sequence[Array]) -> Array | None:
    if any(array.size > _SMALL for array in arrays):
        return computed(node, arrays)
    return _remembered(node.operator, node.attributes, tuple((a.shape, a.dtype, a.tobytes()) for a in arrays))


@lru_cache(maxsize=4096)
def _remembered(operator: Operator, attributes: tuple[tuple[str, Any], ...], contents: tuple[_Content, ...]) -> Array | None:
    arrays = [np.frombuffer(data, dtype).reshape(shape) for shape, dtype, data in contents]
    array = computed(Node("", operator, ("",) * len(arrays), attributes), arrays)
    if array is not None:
        # Every graph of such nodes has it.
        array.flags.writeable = False
    return array
