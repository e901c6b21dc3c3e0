"""Normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import elementwise
from ansorlite.topi.padding import pad
from ansorlite.topi.reduction import normalized_axes, wide_l1, wide_mean, wide_sum_square
from ansorlite.topi.wide import wide


def standardize(x: Tensor, *, axes: Sequence[int], epsilon: float) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon)``, mean and (biased) variance taken over ``axes``."""
    count = math.prod(x.shape[d] for d in normalized_axes(axes, x.ndim))
    mean = wide_mean(x, axes=axes, keepdims=True)
    centered = elementwise(lambda v, m: v - m, x, mean, name="centered")
    squares = wide_sum_square(centered, axes=axes, keepdims=True)
    return elementwise(lambda c, s: te.cast(c * te.rsqrt(s / count + epsilon), x.dtype), centered, squares, name="standardize")


def batch_norm_scale(gamma: Tensor, variance: Tensor, *, epsilon: float, rank: int) -> Tensor:
    """What inference with given statistics multiplies a channel by: ``gamma / sqrt(variance + epsilon)``.

    Shaped ``(c, 1, ...)`` to broadcast over ``rank`` dimensions ``(n, c, spatial...)``. As all of it is constant in a
    trained model, batch normalisation is ``x * scale + shift``, of which nothing is left when a convolution takes it up.
    """
    return te.compute(
        (*gamma.shape, *(1,) * (rank - 2)),
        lambda c, *_: gamma[c] / te.sqrt(variance[c] + epsilon),
        name="batch_norm_scale",
    )


def batch_norm_shift(beta: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """What inference with given statistics adds to a channel: ``beta - mean * scale``; see :func:`batch_norm_scale`."""
    return te.compute(scale.shape, lambda c, *i: beta[c] - mean[c] * scale[(c, *i)], name="batch_norm_shift")


def inverse_deviation(x: Tensor, *, axes: Sequence[int], epsilon: float) -> Tensor:
    """``1 / sqrt(variance + epsilon)`` over ``axes``, which stay with extent 1."""
    count = math.prod(x.shape[d] for d in normalized_axes(axes, x.ndim))
    mean = wide_mean(x, axes=axes, keepdims=True)
    centered = elementwise(lambda v, m: v - m, x, mean, name="centered")
    squares = wide_sum_square(centered, axes=axes, keepdims=True)
    return elementwise(lambda s: te.rsqrt(s / count + epsilon), squares, name="inverse_deviation")


def layer_norm(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """:func:`standardize` over the dimensions from ``axis`` on, times ``scale``, which broadcasts to ``x``."""
    first = normalized_axes([axis], x.ndim)[0]
    standard = standardize(x, axes=range(first, x.ndim), epsilon=epsilon)
    return elementwise(lambda v, g: v * g, standard, scale, name="layer_norm")


def rms_norm(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """``x / sqrt(mean(x * x) + epsilon) * scale`` over the dimensions from ``axis`` on."""
    first = normalized_axes([axis], x.ndim)[0]
    count = math.prod(x.shape[first:])
    squares = wide_sum_square(x, axes=range(first, x.ndim), keepdims=True)

    def element(v: Expr, s: Expr, g: Expr) -> Expr:
        return te.cast(v * te.rsqrt(s / count + epsilon), x.dtype) * g

    return elementwise(element, x, squares, scale, name="rms_norm")


def instance_norm(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """:func:`standardize` over the spatial dimensions of ``(n, c, spatial...)``, then ``scale (c,)`` and ``bias (c,)``.

    Raises:
        ExpressionError: fewer than three dimensions, or other than one scale and bias a channel.
    """
    if x.ndim < 3 or scale.shape != (x.shape[1],) or bias.shape != (x.shape[1],):
        raise ExpressionError(
            f"instance_norm of {x.shape} needs one scale and bias a channel, not {scale.shape} and {bias.shape}"
        )
    standard = standardize(x, axes=range(2, x.ndim), epsilon=epsilon)
    return te.compute(x.shape, lambda *i: standard[i] * scale[i[1]] + bias[i[1]], name="instance_norm")


def lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """Local response normalisation across ``size`` neighbouring channels of ``(n, c, spatial...)``.

    Raises:
        ExpressionError: fewer than two dimensions, or a size below 1.
    """
    if x.ndim < 2 or size < 1:
        raise ExpressionError(f"lrn needs channels in dimension 1 and a positive size; the shape is {x.shape}, the size {size}")
    lead = (size - 1) // 2
    rest = (0,) * (x.ndim - 2)
    padded = pad(x, before=(0, lead, *rest), after=(0, size - 1 - lead, *rest))
    r = te.reduce_axis(size, name="r")

    def square(n: Expr, c: Expr, *spatial: Expr) -> Expr:
        value = padded[(n, c + r, *spatial)]
        return te.sum(wide(value) * wide(value), axis=r)

    squares = te.compute(x.shape, square, name="lrn_squares")
    return _respond(x, squares, scale=alpha / size, beta=beta, bias=bias)


def blocked_lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """:func:`lrn` of blocked data ``(n, c / b, spatial..., b)``.

    Its blocks are laid side by side first, place by place, where any ``b`` neighbouring channels are a vector.

    Raises:
        ExpressionError: fewer than three dimensions, or a size below 1.
    """
    if x.ndim < 3 or size < 1:
        raise ExpressionError(
            f"blocked_lrn needs blocks of channels and a positive size; the shape is {x.shape}, the size {size}"
        )
    batch, blocks, *spatial, block = x.shape
    lead = (size - 1) // 2
    before, after = -(-lead // block), -(-(size - 1 - lead) // block)

    def beside(n: Expr, *i: Expr) -> Expr:
        *places, c, lane = i
        read = x[(n, c - before, *places, lane)]
        return te.if_then_else(te.all(c >= before, c < blocks + before), read, te.cast(0, x.dtype))

    row = te.compute((batch, *spatial, before + blocks + after, block), beside, name="lrn_row")
    r = te.reduce_axis(size, name="r")

    def square(n: Expr, c: Expr, *i: Expr) -> Expr:
        *places, lane = i
        channel = (c + before) * block + lane + r - lead
        value = row[(n, *places, channel // block, channel % block)]
        return te.sum(wide(value) * wide(value), axis=r)

    squares = te.compute(x.shape, square, name="lrn_squares")
    return _respond(x, squares, scale=alpha / size, beta=beta, bias=bias)


def _respond(x: Tensor, squares: Tensor, *, scale: float, beta: float, bias: float) -> Tensor:
    return elementwise(lambda v, s: te.cast(v / te.power(s * scale + bias, beta), x.dtype), x, squares, name="lrn")


def lp_normalize(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """``x`` divided by its ``p``-norm (1 or 2) along ``axis``; where that is 0, 0.

    Raises:
        ExpressionError: another ``p``.
    """
    if p not in (1, 2):
        raise ExpressionError(f"lp_normalize knows p = 1 and p = 2, not {p}")
    sums = (wide_sum_square if p == 2 else wide_l1)(x, axes=[axis], keepdims=True)

    def element(v: Expr, s: Expr) -> Expr:
        length = te.sqrt(s) if p == 2 else s
        return te.cast(te.if_then_else(s == 0, v, v / length), x.dtype)

    return elementwise(element, x, sums, name="lp_normalize")
