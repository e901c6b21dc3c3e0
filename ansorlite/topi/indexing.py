"""Elements taken from and put to places that other tensors name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

import numpy as np

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, as_expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.reduction import normalized_axes
from ansorlite.topi.wide import wide


class Scatter(Enum):
    """What becomes of an element that updates go to."""

    REPLACE = "none"
    ADD = "add"
    MULTIPLY = "mul"
    MAXIMUM = "max"
    MINIMUM = "min"


def wrapped(index: Expr, extent: int) -> Expr:
    """``index`` as int64; negative ones count from the end."""
    wide = te.cast(index, "int64")
    return te.if_then_else(wide < 0, wide + extent, wide)


def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """``numpy.take_along_axis``; negative indices count from the end.

    Raises:
        ExpressionError: another number of dimensions.
    """
    (d,) = normalized_axes([axis], x.ndim)
    if indices.ndim != x.ndim:
        raise ExpressionError(f"gather_elements needs indices of {x.ndim} dimensions, not {indices.shape}")

    def element(*axes: Expr) -> Expr:
        return x[(*axes[:d], wrapped(indices[axes], x.shape[d]), *axes[d + 1 :])]

    return te.compute(indices.shape, element, name="gather_elements")


def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Slices of ``x`` at the index tuples in the last dimension of ``indices``; the first ``batch_dims`` are common.

    Raises:
        ExpressionError: tuples longer than ``x`` has dimensions, or batch dimensions that differ.
    """
    depth = indices.shape[-1]
    lead = indices.shape[:-1]
    if batch_dims + depth > x.ndim or x.shape[:batch_dims] != lead[:batch_dims]:
        raise ExpressionError(f"gather_nd: indices {indices.shape} do not fit {x.shape} with {batch_dims} batch dimensions")
    rest = x.shape[batch_dims + depth :]

    def element(*axes: Expr) -> Expr:
        place = axes[: len(lead)]
        found = [wrapped(indices[(*place, n)], x.shape[batch_dims + n]) for n in range(depth)]
        return x[(*place[:batch_dims], *found, *axes[len(lead) :])]

    return te.compute((*lead, *rest), element, name="gather_nd")


def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, mode: Scatter = Scatter.REPLACE) -> Tensor:
    """``x``, with each element of ``updates`` put to (or combined with) the place along ``axis`` that ``indices`` names.

    Every place looks for the updates that go to it: work grows with the product of both extents along ``axis``. Of several
    replacements the last one stays.

    Raises:
        ExpressionError: shapes that do not fit together.
    """
    (d,) = normalized_axes([axis], x.ndim)
    outside = any(u > e for k, (u, e) in enumerate(zip(updates.shape, x.shape, strict=False)) if k != d)
    if indices.shape != updates.shape or indices.ndim != x.ndim or outside:
        raise ExpressionError(f"scatter_elements: {x.shape}, indices {indices.shape} and updates {updates.shape} do not fit")

    def source(axes: tuple[Expr, ...], k: Expr) -> tuple[Expr, ...]:
        return (*axes[:d], k, *axes[d + 1 :])

    def covered(axes: tuple[Expr, ...]) -> list[Expr]:
        return [a < u for n, (a, u, e) in enumerate(zip(axes, updates.shape, x.shape, strict=True)) if n != d and u < e]

    def hits(axes: tuple[Expr, ...], k: Expr) -> Expr:
        return wrapped(indices[source(axes, k)], x.shape[d]) == axes[d]

    return _scattered(x, mode, (updates.shape[d],), covered, lambda a, k: hits(a, *k), lambda a, k: updates[source(a, *k)])


def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, mode: Scatter = Scatter.REPLACE) -> Tensor:
    """``x``, with slices of ``updates`` put to (or combined with) the places that the last dimension of ``indices`` names.

    Every place looks for the updates that go to it: work grows with the product of the number of tuples and the size of
    ``x``, of replacements with that of the number of places that a tuple may name. Of several replacements the last one stays.

    Raises:
        ExpressionError: shapes that do not fit together.
    """
    depth, lead = indices.shape[-1], indices.shape[:-1]
    if depth > x.ndim or updates.shape != (*lead, *x.shape[depth:]):
        raise ExpressionError(f"scatter_nd: {x.shape}, indices {indices.shape} and updates {updates.shape} do not fit")

    def hits(axes: tuple[Expr, ...], k: Sequence[Expr]) -> Expr:
        return te.all(*(wrapped(indices[(*k, n)], x.shape[n]) == axes[n] for n in range(depth)))

    return _scattered(x, mode, lead, lambda _: [], hits, lambda a, k: updates[(*k, *a[depth:])], depth)


def slice_scatter(x: Tensor, updates: Tensor, *, axis: int, start: int, step: int = 1, mode: Scatter = Scatter.REPLACE) -> Tensor:
    """``x``, with ``updates`` put to (or combined with) the slice that begins at ``start`` along ``axis``.

    Raises:
        ExpressionError: the slice does not fit.
    """
    (d,) = normalized_axes([axis], x.ndim)
    count = updates.shape[d] if updates.ndim == x.ndim else 0
    rest = updates.shape[:d] == x.shape[:d] and updates.shape[d + 1 :] == x.shape[d + 1 :]
    if not rest or step < 1 or count < 1 or start < 0 or start + (count - 1) * step >= x.shape[d]:
        raise ExpressionError(f"slice_scatter: {updates.shape} does not fit into {x.shape} from {start} in steps of {step}")

    def element(*axes: Expr) -> Expr:
        behind = axes[d] - start
        place = behind // step if step > 1 else behind
        inside = [behind >= 0, place < count, *([behind % step == 0] if step > 1 else ())]
        return te.if_then_else(te.all(*inside), _joined(x[axes], updates[(*axes[:d], place, *axes[d + 1 :])], mode), x[axes])

    return te.compute(x.shape, element, name="slice_scatter")


def table_scatter(x: Tensor, updates: Tensor, table: Tensor, *, axis: int, mode: Scatter = Scatter.REPLACE) -> Tensor:
    """``x``, with ``updates`` put to (or combined with) the places along ``axis`` that ``table`` gives one.

    Args:
        table: for each place along ``axis``, which update goes there; -1: none does.

    Raises:
        ExpressionError: shapes that do not fit together.
    """
    (d,) = normalized_axes([axis], x.ndim)
    if table.shape != x.shape[d : d + 1] or updates.shape != (*x.shape[:d], *updates.shape[d : d + 1], *x.shape[d + 1 :]):
        raise ExpressionError(f"table_scatter: {x.shape}, updates {updates.shape} and table {table.shape} do not fit")

    def element(*axes: Expr) -> Expr:
        place = te.cast(table[axes[d]], "int64")
        return te.if_then_else(place >= 0, _joined(x[axes], updates[(*axes[:d], place, *axes[d + 1 :])], mode), x[axes])

    return te.compute(x.shape, element, name="table_scatter")


def tensor_scatter(past: Tensor, update: Tensor, begins: Tensor | None = None, *, axis: int, circular: bool = False) -> Tensor:
    """A cache with ``update`` at places ``begins[b]`` and following of dimension ``axis``, for each ``b`` of the first dimension.

    Args:
        begins: (batch); by default all 0.
        circular: whether what goes beyond the last place goes on at the first one.

    Raises:
        ExpressionError: the cache and the update differ in another dimension, or there are not as many ``begins`` as caches.
    """
    (d,) = normalized_axes([axis], past.ndim)
    fitting = update.ndim == past.ndim and all(
        a == b for k, (a, b) in enumerate(zip(past.shape, update.shape, strict=True)) if k != d
    )
    if not fitting or d == 0 or update.shape[d] > past.shape[d]:
        raise ExpressionError(f"tensor_scatter cannot put {update.shape} along dimension {d} of {past.shape}")
    if begins is not None and begins.shape != past.shape[:1]:
        raise ExpressionError(f"tensor_scatter needs a place for each of {past.shape[0]} caches, not {begins.shape}")

    def element(*axes: Expr) -> Expr:
        place = axes[d] if begins is None else axes[d] - te.cast(begins[axes[0]], "int64")
        if circular:
            place = place % past.shape[d]
        inside = (place >= 0) & (place < update.shape[d])
        return te.if_then_else(inside, update[(*axes[:d], place, *axes[d + 1 :])], past[axes])

    return te.compute(past.shape, element, name="tensor_scatter")


def _joined(old: Expr, update: Expr, mode: Scatter) -> Expr:
    """An element of what ``old`` was, with the only ``update`` that goes there."""
    return update if mode is Scatter.REPLACE else te.cast(_FOLDS[mode][1](old, update), old.dtype)


def _scattered(
    x: Tensor,
    mode: Scatter,
    extents: tuple[int, ...],
    covered: Callable[[tuple[Expr, ...]], list[Expr]],
    hits: Callable[[tuple[Expr, ...], Sequence[Expr]], Expr],
    update: Callable[[tuple[Expr, ...], Sequence[Expr]], Expr],
    depth: int | None = None,
) -> Tensor:
    """``x`` with updates over a domain of ``extents``; ``covered`` says where in ``x`` they may go at all.

    Args:
        depth: of how many dimensions of ``x``, the first ones, ``hits`` asks; by default of all.
    """
    lengths = extents or (1,)
    steps = [te.reduce_axis(extent, name=f"u{n}") for n, extent in enumerate(lengths)]

    def own(k: Sequence[Expr]) -> Sequence[Expr]:
        return k if extents else ()

    def where(axes: tuple[Expr, ...], k: Sequence[Expr], then: Expr, otherwise: Expr) -> Expr:
        inside = te.if_then_else(hits(axes, own(k)), then, otherwise)
        conditions = covered(axes)
        return te.if_then_else(te.all(*conditions), inside, otherwise) if conditions else inside

    if mode is not Scatter.REPLACE:
        fold, join, start = _FOLDS[mode]
        dtype = wide(te.cast(0, x.dtype)).dtype if mode in (Scatter.ADD, Scatter.MULTIPLY) else x.dtype
        folded = te.compute(
            x.shape,
            lambda *a: fold(where(a, steps, te.cast(update(a, own(steps)), dtype), start(dtype)), axis=steps),
            name="scatter_fold",
        )
        return te.compute(x.shape, lambda *a: te.cast(join(x[a], folded[a]), x.dtype), name="scatter")

    def number(k: Sequence[Expr]) -> Expr:
        flat: Expr = te.cast(0, "int64")
        for index, extent in zip(k, lengths, strict=True):
            flat = index + flat * extent
        return flat

    last = te.compute(
        x.shape[:depth], lambda *a: te.max(where(a, steps, number(steps), te.cast(-1, "int64")), axis=steps), name="scatter_last"
    )

    def element(*a: Expr) -> Expr:
        flat = last[a[:depth]]
        k = [(flat // math.prod(lengths[n + 1 :])) % lengths[n] for n in range(len(lengths))]
        return te.if_then_else(flat >= 0, update(a, own(k)), x[a])

    return te.compute(x.shape, element, name="scatter")


def _limit(highest: bool) -> Callable[[str], Expr]:
    def value(dtype: str) -> Expr:
        if dtype.startswith(("float", "bfloat")):
            return te.cast(math.inf if highest else -math.inf, dtype)
        if dtype == "bool":
            return te.cast(int(highest), dtype)
        info = np.iinfo(dtype)
        return as_expr(dtypes.NUMPY[dtype].type(info.max if highest else info.min))

    return value


#: mode → the fold of the updates of one place, how it joins what was there, and what an empty fold is.
_FOLDS: Final[dict[Scatter, tuple[Callable[..., Expr], Callable[[Expr, Expr], Expr], Callable[[str], Expr]]]] = {
    Scatter.ADD: (te.sum, lambda a, b: a + b, lambda dtype: te.cast(0, dtype)),
    Scatter.MULTIPLY: (te.prod, lambda a, b: a * b, lambda dtype: te.cast(1, dtype)),
    Scatter.MAXIMUM: (te.max, te.maximum, _limit(highest=False)),
    Scatter.MINIMUM: (te.min, te.minimum, _limit(highest=True)),
}


def reverse_sequence(x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """The first ``lengths[b]`` elements along ``time_axis`` back to front, for each ``b`` along ``batch_axis``."""

    def element(*axes: Expr) -> Expr:
        length, t = te.cast(lengths[axes[batch_axis]], "int64"), axes[time_axis]
        place = te.if_then_else(t < length, length - 1 - t, t)
        return x[tuple(place if d == time_axis else axis for d, axis in enumerate(axes))]

    return te.compute(x.shape, element, name="reverse_sequence")
