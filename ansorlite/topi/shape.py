"""Operators that move elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import broadcast_read, broadcast_shape
from ansorlite.topi.reduction import normalized_axes


def reshape(x: Tensor, *, shape: Sequence[int]) -> Tensor:
    """The elements of ``x``, in row-major order, in another shape. A graph makes it a view, not a task.

    Raises:
        ExpressionError: another number of elements.
    """
    if math.prod(shape) != math.prod(x.shape):
        raise ExpressionError(f"cannot reshape {x.shape} to {tuple(shape)}: another number of elements")

    def element(*axes: Expr) -> Expr:
        flat: Expr | int = 0
        for axis, extent in zip(axes, shape, strict=True):
            flat = axis + flat * extent
        indices: list[Expr | int] = []
        for extent in reversed(x.shape):
            indices.append(0 if extent == 1 else flat % extent)
            flat = flat // extent if extent > 1 else flat
        return x[tuple(reversed(indices))]

    return te.compute(shape, element, name="reshape")


def transpose(x: Tensor, *, axes: Sequence[int]) -> Tensor:
    """Dimension ``d`` of the result is dimension ``axes[d]`` of ``x``.

    Raises:
        ExpressionError: ``axes`` is not a permutation of the dimensions.
    """
    if sorted(axes) != list(range(x.ndim)):
        raise ExpressionError(f"transpose needs a permutation of {x.ndim} dimensions; got {tuple(axes)}")
    places = [list(axes).index(d) for d in range(x.ndim)]
    return te.compute([x.shape[a] for a in axes], lambda *i: x[tuple(i[p] for p in places)], name="transpose")


def broadcast_to(x: Tensor, *, shape: Sequence[int]) -> Tensor:
    """``x`` broadcast together with ``shape``, by numpy's rules in both directions."""
    full = broadcast_shape(x.shape, tuple(shape))
    return te.compute(full, lambda *i: broadcast_read(x, i, full), name="broadcast")


def concat(*tensors: Tensor, axis: int) -> Tensor:
    """The tensors one after another along ``axis``.

    Raises:
        ExpressionError: the other dimensions differ.
    """
    (d,) = normalized_axes([axis], tensors[0].ndim)
    for tensor in tensors[1:]:
        if tensor.ndim != tensors[0].ndim or any(
            a != b for k, (a, b) in enumerate(zip(tensor.shape, tensors[0].shape, strict=True)) if k != d
        ):
            raise ExpressionError(f"concat along axis {d}: {tensors[0].shape} and {tensor.shape} differ in another dimension")
    ends = [sum(t.shape[d] for t in tensors[: n + 1]) for n in range(len(tensors))]

    def element(*axes: Expr) -> Expr:
        def part(n: int) -> Expr:
            start = ends[n] - tensors[n].shape[d]
            return tensors[n][(*axes[:d], axes[d] - start if start else axes[d], *axes[d + 1 :])]

        value = part(len(tensors) - 1)
        for n in reversed(range(len(tensors) - 1)):
            value = te.if_then_else(axes[d] < ends[n], part(n), value)
        return value

    return te.compute((*tensors[0].shape[:d], ends[-1], *tensors[0].shape[d + 1 :]), element, name="concat")


def strided_slice(x: Tensor, *, starts: Sequence[int], counts: Sequence[int], steps: Sequence[int]) -> Tensor:
    """``counts[d]`` elements of dimension ``d``: ``starts[d]``, ``starts[d] + steps[d]``, ...

    Raises:
        ExpressionError: not one of each for each dimension, or an element outside of ``x``.
    """
    if not len(starts) == len(counts) == len(steps) == x.ndim:
        raise ExpressionError(f"slice needs a start, a count and a step for each of the {x.ndim} dimensions of {x.shape}")
    for start, count, step, extent in zip(starts, counts, steps, x.shape, strict=True):
        if count < 1 or not (0 <= start < extent and 0 <= start + (count - 1) * step < extent):
            raise ExpressionError(f"slice of {count} from {start} by {step} is not inside of {extent} elements")

    def element(*axes: Expr) -> Expr:
        scaled = [axis * step if step != 1 else axis for axis, step in zip(axes, steps, strict=True)]
        return x[tuple(axis + start if start else axis for axis, start in zip(scaled, starts, strict=True))]

    return te.compute(counts, element, name="slice")


def gather(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """``numpy.take(x, indices, axis)``; negative indices count from the end."""
    (d,) = normalized_axes([axis], x.ndim)

    def element(*axes: Expr) -> Expr:
        index = te.cast(indices[axes[d : d + indices.ndim]], "int64")
        wrapped = te.if_then_else(index < 0, index + x.shape[d], index)
        return x[(*axes[:d], wrapped, *axes[d + indices.ndim :])]

    return te.compute((*x.shape[:d], *indices.shape, *x.shape[d + 1 :]), element, name="gather")


def tile(x: Tensor, *, repeats: Sequence[int]) -> Tensor:
    """``numpy.tile`` with one repeat count for each dimension.

    Raises:
        ExpressionError: another number of counts.
    """
    if len(repeats) != x.ndim:
        raise ExpressionError(f"tile needs a count for each of the {x.ndim} dimensions; got {tuple(repeats)}")
    shape = [e * r for e, r in zip(x.shape, repeats, strict=True)]

    def element(*axes: Expr) -> Expr:
        return x[tuple(a if r == 1 else a % e for a, e, r in zip(axes, x.shape, repeats, strict=True))]

    return te.compute(shape, element, name="tile")
