"""Where the extreme elements are."""

from __future__ import annotations

from collections.abc import Callable

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.reduction import normalized_axes, reduce_max, reduce_min


def arg_max(x: Tensor, *, axis: int = 0, keepdims: bool = True, last: bool = False) -> Tensor:
    """The place of the largest element along ``axis``, int64: of equal ones the first, or the ``last``. NaN is largest."""
    return _where(x, reduce_max(x, axes=(axis,), keepdims=True), axis, keepdims, last, "arg_max")


def arg_min(x: Tensor, *, axis: int = 0, keepdims: bool = True, last: bool = False) -> Tensor:
    """The place of the smallest element along ``axis``, int64: of equal ones the first, or the ``last``. NaN is smallest."""
    return _where(x, reduce_min(x, axes=(axis,), keepdims=True), axis, keepdims, last, "arg_min")


def _where(x: Tensor, extreme: Tensor, axis: int, keepdims: bool, last: bool, name: str) -> Tensor:
    """The place along ``axis`` where ``x`` is ``extreme``, which is NaN if any element is."""
    (d,) = normalized_axes([axis], x.ndim)
    extent = x.shape[d]
    k = te.reduce_axis(extent, name="k")
    shape = (*x.shape[:d], *((1,) if keepdims else ()), *x.shape[d + 1 :])
    fold: Callable[..., Expr] = te.max if last else te.min

    def element(*axes: Expr) -> Expr:
        before, after = axes[:d], axes[d + keepdims :]
        value = x[(*before, k, *after)]
        found = te.any(value == extreme[(*before, 0, *after)], value != value)
        return fold(te.if_then_else(found, k, te.cast(0 if last else extent - 1, "int64")), axis=k)

    return te.compute(shape, element, name=name)


def top_places(x: Tensor, *, count: int, axis: int = -1, largest: bool = True) -> Tensor:
    """The places of the ``count`` largest elements along ``axis``, or smallest, in order, int64. NaN is largest.

    Of equal ones the first goes first. There is no sorting: how many elements go before each one is counted, with as many
    comparisons as there are pairs.

    Raises:
        ExpressionError: there are not so many elements.
    """
    (d,) = normalized_axes([axis], x.ndim)
    extent = x.shape[d]
    if not 1 <= count <= extent:
        raise ExpressionError(f"top_places: the dimension has {extent} elements, and {count} of them are asked for")
    other, k = te.reduce_axis(extent, name="other"), te.reduce_axis(extent, name="k")

    def goes_before(*axes: Expr) -> Expr:
        mine, theirs = x[axes], x[(*axes[:d], other, *axes[d + 1 :])]
        high, low = (theirs, mine) if largest else (mine, theirs)
        ahead = te.any(high > low, te.all(high != high, low == low))
        behind = te.any(low > high, te.all(low != low, high == high))
        first = te.any(ahead, te.all(~behind, other < axes[d]))
        return te.sum(te.cast(first, "int32"), axis=other)

    ranks = te.compute(x.shape, goes_before, name="ranks")

    def place(*axes: Expr) -> Expr:
        found = te.cast(ranks[(*axes[:d], k, *axes[d + 1 :])], "int64") == axes[d]
        return te.max(te.if_then_else(found, k, te.cast(0, "int64")), axis=k)

    return te.compute((*x.shape[:d], count, *x.shape[d + 1 :]), place, name="top_places")


def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """1 at the first of the largest elements along ``axis``, 0 elsewhere."""
    (d,) = normalized_axes([axis], x.ndim)
    where = arg_max(x, axis=d)

    def element(*axes: Expr) -> Expr:
        found = where[tuple(0 if n == d else a for n, a in enumerate(axes))] == axes[d]
        return te.if_then_else(found, te.cast(1, x.dtype), te.cast(0, x.dtype))

    return te.compute(x.shape, element, name="hardmax")
