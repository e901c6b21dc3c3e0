"""Reductions over some dimensions of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import elementwise
from ansorlite.topi.wide import comparable, narrow, wide


def normalized_axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """``axes`` counted from the front, sorted; ``None`` is all of them.

    Raises:
        ExpressionError: one that the tensor does not have, or one given twice.
    """
    chosen = range(rank) if axes is None else axes
    result = sorted(axis + rank if axis < 0 else axis for axis in chosen)
    if any(not 0 <= axis < rank for axis in result):
        raise ExpressionError(f"axes {tuple(chosen)} are not all among the {rank} dimensions")
    if len(set(result)) != len(result):
        raise ExpressionError(f"axes {tuple(chosen)} name one dimension twice")
    return tuple(result)


def reduce(
    fold: Callable[..., Expr],
    x: Tensor,
    axes: Sequence[int] | None,
    keepdims: bool,
    name: str,
    prologue: Callable[[Expr], Expr] = lambda v: v,
) -> Tensor:
    """``fold`` (one of ``te.sum``, ``te.prod``, ``te.max``, ``te.min``) of ``prologue(x)`` over ``axes``."""
    gone = normalized_axes(axes, x.ndim)
    folded = {d: te.reduce_axis(x.shape[d], name=f"r{d}") for d in gone}
    shape = tuple(1 if d in folded else e for d, e in enumerate(x.shape) if keepdims or d not in folded)

    def element(*own: Expr) -> Expr:
        kept = iter(own if not keepdims else [axis for d, axis in enumerate(own) if d not in folded])
        indices: list[Any] = [folded[d] if d in folded else next(kept) for d in range(x.ndim)]
        value = prologue(x[tuple(indices)])
        reduced: list[Axis] = list(folded.values())
        return fold(value, axis=reduced) if reduced else value

    return te.compute(shape, element, name=name)


def wide_sum(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """:func:`reduce_sum` that is not rounded yet, for who goes on computing: of float16 and bfloat16, float32."""
    return reduce(te.sum, x, axes, keepdims, "sum", wide)


def wide_sum_square(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """:func:`reduce_sum_square` that is not rounded yet; see :func:`wide_sum`."""
    return reduce(te.sum, x, axes, keepdims, "sum_square", lambda v: wide(v) * wide(v))


def wide_max(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """:func:`reduce_max` that is not made bfloat16 again yet; see :func:`wide_sum`."""
    return reduce(te.max, x, axes, keepdims, "max", comparable)


def wide_l1(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """:func:`reduce_l1` that is not rounded yet; see :func:`wide_sum`."""
    return reduce(te.sum, x, axes, keepdims, "l1", lambda v: wide(te.abs(v)))


def reduce_sum(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    return narrow(wide_sum(x, axes=axes, keepdims=keepdims), x.dtype)


def reduce_prod(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    return narrow(reduce(te.prod, x, axes, keepdims, "prod", wide), x.dtype)


def reduce_max(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    return narrow(wide_max(x, axes=axes, keepdims=keepdims), x.dtype)


def reduce_min(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    return narrow(reduce(te.min, x, axes, keepdims, "min", comparable), x.dtype)


def reduce_mean(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    count = math.prod(x.shape[d] for d in normalized_axes(axes, x.ndim))
    total = wide_sum(x, axes=axes, keepdims=keepdims)
    return elementwise(lambda v: te.cast(v / count, x.dtype), total, name="mean")


def wide_mean(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """:func:`reduce_mean` of floats that is not rounded yet; see :func:`wide_sum`."""
    count = math.prod(x.shape[d] for d in normalized_axes(axes, x.ndim))
    return elementwise(lambda v: v / count, wide_sum(x, axes=axes, keepdims=keepdims), name="mean")


def reduce_l1(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    return narrow(wide_l1(x, axes=axes, keepdims=keepdims), x.dtype)


def reduce_sum_square(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    return narrow(wide_sum_square(x, axes=axes, keepdims=keepdims), x.dtype)


def reduce_l2(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    squares = wide_sum_square(x, axes=axes, keepdims=keepdims)
    return elementwise(lambda v: te.cast(te.sqrt(v), x.dtype), squares, name="l2")


def reduce_log_sum(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    return elementwise(lambda v: te.cast(te.log(v), x.dtype), wide_sum(x, axes=axes, keepdims=keepdims), name="log_sum")


def reduce_log_sum_exp(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """``log(sum(exp(x)))``, shifted by the maximum so that nothing overflows. Integers are rounded toward zero in the end."""
    gone = normalized_axes(axes, x.ndim)
    # Where the maximum is infinite there is nothing to shift by: a difference of infinities is no number.
    peak = elementwise(_finite_or_zero, reduce_max(x, axes=gone, keepdims=True), name="shift")
    shifted = elementwise(lambda v, m: te.exp(_as_float(v) - m), x, peak, name="shifted_exp")
    total = wide_sum(shifted, axes=gone, keepdims=keepdims)
    flat_peak = peak if keepdims else elementwise(_finite_or_zero, reduce_max(x, axes=gone), name="shift")
    return elementwise(lambda s, m: te.cast(te.log(s) + m, x.dtype), total, flat_peak, name="log_sum_exp")


def _as_float(value: Expr) -> Expr:
    return value if dtypes.is_float(value.dtype) else te.cast(value, "float64")


def _finite_or_zero(value: Expr) -> Expr:
    if not dtypes.is_float(value.dtype):
        return te.cast(value, "float64")
    return te.if_then_else(te.abs(value) == math.inf, 0.0, value)
