"""Operators whose results are elements of what they read: chosen by place, or as the largest or smallest."""

from __future__ import annotations

from typing import Final

from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Node
from ansorlite.topi.pooling import global_max_pool, max_pool
from ansorlite.topi.reduction import reduce_max, reduce_min
from ansorlite.topi.shape import broadcast_to, concat, gather, reshape, strided_slice, tile, transpose

#: What is the same for all elements and keeps their order may be done before these as well as after them, to the bit.
CHOOSING: Final[frozenset[Operator]] = frozenset(
    (reshape, transpose, strided_slice, broadcast_to, tile, concat, gather, max_pool, global_max_pool, reduce_max, reduce_min)
)


def chosen_from(node: Node) -> tuple[str, ...]:
    """The values whose elements a node of such an operator gives; what else it reads are places."""
    return node.inputs[:1] if node.operator is gather else node.inputs
