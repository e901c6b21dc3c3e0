"""Resampling along one dimension: every element of the result is a weighted sum of a few elements."""

from __future__ import annotations

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.reduction import normalized_axes
from ansorlite.topi.wide import narrow, wide


def resample(x: Tensor, sources: Tensor, weights: Tensor, *, axis: int) -> Tensor:
    """Element ``o`` along ``axis`` is the sum of ``x`` at ``sources[o, t]`` times ``weights[o, t]`` over the taps ``t``.

    Interpolation of any order and any filter is of this form, with tables ``(outputs, taps)`` that depend on shapes only.

    Raises:
        ExpressionError: tables of different shapes.
    """
    (d,) = normalized_axes([axis], x.ndim)
    if sources.shape != weights.shape or sources.ndim != 2:
        raise ExpressionError(f"resample needs two tables of one shape, not {sources.shape} and {weights.shape}")
    outputs, taps = sources.shape
    t = te.reduce_axis(taps, name="t")

    def element(*axes: Expr) -> Expr:
        o = axes[d]
        return te.sum(wide(x[(*axes[:d], sources[o, t], *axes[d + 1 :])]) * wide(weights[o, t]), axis=t)

    return narrow(te.compute((*x.shape[:d], outputs, *x.shape[d + 1 :]), element, name="resample"), x.dtype)
