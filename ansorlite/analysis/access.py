"""Access relations: which elements of which tensor a compute reads, dimension by dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ansorlite.analysis.branches import branch_axes
from ansorlite.once import once_for_each
from ansorlite.te.expr import Axis, Read, Select
from ansorlite.te.index.affine import affine
from ansorlite.te.index.form import Affine
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads, walk

#: An axis of fewer elements is not vectorised while there is another.
LEAST_LANES = 4


@dataclass(frozen=True)
class Access:
    """One distinct read in a compute.

    Attributes:
        tensor: what is read.
        dims: the affine form of each index; ``None`` where it is not affine.
        axes: every axis of the reader that the indices depend on.
    """

    tensor: Tensor
    dims: tuple[Affine | None, ...]
    axes: frozenset[Axis]

    def stride(self, axis: Axis) -> int | None:
        """Elements between the reads at neighbouring values of ``axis``; ``None`` when they are not always the same."""
        if axis not in self.axes:
            return 0
        stride, scale = 0, 1
        for form, extent in zip(reversed(self.dims), reversed(self.tensor.shape), strict=True):
            if form is None or (axis in form.variables and axis not in form.coefficients):
                return None
            stride += form.coefficients.get(axis, 0) * scale
            scale *= extent
        return stride


@once_for_each
def accesses(tensor: Tensor) -> tuple[Access, ...]:
    """The distinct reads of a compute, in order of appearance (none for a placeholder)."""
    if tensor.body is None:
        return ()
    return tuple(_access(read) for read in reads(tensor.body))


def _access(read: Read) -> Access:
    axes = frozenset(v for index in read.indices for v in free_vars(index) if isinstance(v, Axis))
    return Access(read.tensor, tuple(affine(index) for index in read.indices), axes)


def has_select(tensor: Tensor) -> bool:
    """Whether the body branches."""
    return tensor.body is not None and any(isinstance(node, Select) for node in walk(tensor.body))


def axes_of(tensor: Tensor) -> tuple[Axis, ...]:
    """Space axes, then reduce axes."""
    return tensor.axes + tensor.reduce_axes


@once_for_each
def positions(tensor: Tensor) -> dict[Axis, int]:
    """The place of each axis among :func:`axes_of`: space axes count dimensions. (``axes.index`` builds expressions.)"""
    return {axis: position for position, axis in enumerate(axes_of(tensor))}


def lane_axis(tensor: Tensor) -> Axis | None:
    """The axis whose neighbouring values belong in one vector, or ``None`` for a scalar.

    It is the axis along which most memory is walked with stride 1: each read counts by its elements, and so does the store.
    An access that does not move along the axis (a broadcast) neither speaks for nor against it. Ties go to the last
    space axis, then outward. Never one that chooses the expression: each lane would compute all of them. Not a reduce
    axis of next to no elements either, while there is another: the windows of pooling would be vectors of 2 or 3.
    """
    branching = branch_axes(tensor)
    axes = (*reversed(tensor.axes), *reversed(tensor.reduce_axes))
    candidates = [a for a in axes if a.extent > 1 and a not in branching]
    wide = [a for a in candidates if not a.reduce or a.extent >= LEAST_LANES]
    return contiguous_axis(tensor, wide or candidates) if candidates else None


@once_for_each
def walked(tensor: Tensor) -> tuple[int, ...]:
    """The dimensions in the order of loops that read memory in runs: that along which the first read is contiguous is last."""
    order = range(len(tensor.axes))
    for access in accesses(tensor):
        along = [dim for dim in order if tensor.axes[dim].extent > 1 and access.stride(tensor.axes[dim]) == 1]
        if along:
            return (*(dim for dim in order if dim != along[-1]), along[-1])
    return tuple(order)


def contiguous_axis(tensor: Tensor, candidates: Sequence[Axis]) -> Axis:
    """The first of the ``candidates`` along which most elements read and stored lie side by side."""
    last = next((a for a in reversed(tensor.axes) if a.extent > 1), None)

    def score(axis: Axis) -> int:
        strides = [(access.stride(axis), prod(a.extent for a in access.axes)) for access in accesses(tensor)]
        total = sum(size if stride == 1 else 0 if stride == 0 else -size for stride, size in strides)
        if not axis.reduce:
            total += prod(tensor.shape) if axis is last else -prod(tensor.shape)
        return total

    return max(candidates, key=score)
