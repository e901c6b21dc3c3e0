"""Axes that a compute chooses its expression by: ``if i == 0: ... elif i == 1: ...``.

Written out, the loop over such an axis has no choice left in it; as a loop, it tests in every iteration what never changes.
"""

from __future__ import annotations

from math import prod

from ansorlite.once import once_for_each
from ansorlite.te.expr import Axis, Binary, Reduce, Select
from ansorlite.te.ops import BinaryOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, walk

#: At most so many copies of a loop body are written out.
MAX_COPIES = 64


@once_for_each
def branch_axes(tensor: Tensor) -> frozenset[Axis]:
    """The axes that a comparison for equality depends on alone, in an element-wise compute; none if they are too long."""
    if tensor.body is None or isinstance(tensor.body, Reduce):
        return frozenset()
    found: set[Axis] = set()
    own = frozenset(tensor.axes)
    for node in walk(tensor.body):
        if isinstance(node, Select) and isinstance(node.cond, Binary) and node.cond.op is BinaryOp.EQ:
            axes = free_vars(node.cond)
            if len(axes) == 1:
                found |= own & axes
    return frozenset(found) if prod(axis.extent for axis in found) <= MAX_COPIES else frozenset()


def region_loops(tensor: Tensor, lane: Axis | None) -> tuple[Axis, ...]:
    """The space axes of ``tensor`` but ``lane``, in the order of the loops over a box of it: those that branch come last."""
    last = branch_axes(tensor)
    others = [axis for axis in tensor.axes if axis is not lane]
    return (*(axis for axis in others if axis not in last), *(axis for axis in others if axis in last))
