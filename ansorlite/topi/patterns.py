"""Tensors whose elements depend on where they are: ranges, identities, triangles, one-hot rows; and running folds."""

from __future__ import annotations

from collections.abc import Callable

from ansorlite import te
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.reduction import normalized_axes
from ansorlite.topi.wide import narrow, wide


def arange(start: Tensor, delta: Tensor, *, count: int) -> Tensor:
    """``start + n * delta`` for ``n`` below ``count``; both are scalars of one dtype."""
    return te.compute((count,), lambda n: te.cast(start[()] + te.cast(n, start.dtype) * delta[()], start.dtype), name="arange")


def triangle(x: Tensor, *, upper: bool, offset: int = 0) -> Tensor:
    """``x``, with zeros below (``upper``) or above the diagonal that is ``offset`` to the right of the main one."""

    def element(*axes: Expr) -> Expr:
        row, column = axes[-2] + offset, axes[-1]
        return te.if_then_else(column >= row if upper else column <= row, x[axes], te.cast(0, x.dtype))

    return te.compute(x.shape, element, name="triangle")


def one_hot(indices: Tensor, values: Tensor, *, depth: int, axis: int = -1) -> Tensor:
    """``values[1]`` where the position along the new ``axis`` is the index, ``values[0]`` elsewhere.

    Indices from ``-depth`` to ``depth - 1`` count; for others no position is hot.
    """
    (d,) = normalized_axes([axis], indices.ndim + 1)

    def element(*axes: Expr) -> Expr:
        index = te.cast(indices[(*axes[:d], *axes[d + 1 :])], "int64")
        index = te.if_then_else(index < 0, index + depth, index)
        return te.if_then_else(index == axes[d], values[1], values[0])

    return te.compute((*indices.shape[:d], depth, *indices.shape[d:]), element, name="one_hot")


def cumulative_sum(x: Tensor, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The sum of all elements up to each one along ``axis``: without itself if ``exclusive``, from the end if ``reverse``."""
    return _running(te.sum, 0, x, axis, exclusive, reverse, "cumulative_sum")


def cumulative_product(x: Tensor, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The product of all elements up to each one along ``axis``; see :func:`cumulative_sum`."""
    return _running(te.prod, 1, x, axis, exclusive, reverse, "cumulative_product")


def _running(fold: Callable[..., Expr], neutral: int, x: Tensor, axis: int, exclusive: bool, reverse: bool, name: str) -> Tensor:
    (d,) = normalized_axes([axis], x.ndim)
    k = te.reduce_axis(x.shape[d], name="k")

    def element(*axes: Expr) -> Expr:
        first, second = (axes[d], k) if reverse else (k, axes[d])
        counts = first < second if exclusive else first <= second
        value = wide(x[(*axes[:d], k, *axes[d + 1 :])])
        return fold(te.if_then_else(counts, value, te.cast(neutral, value.dtype)), axis=k)

    return narrow(te.compute(x.shape, element, name=name), x.dtype)
