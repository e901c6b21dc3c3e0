"""Convolutions of blocked data ``(n, c / b, spatial..., b)``: a vector of ``b`` channels lies side by side.

NCHWc in the papers (Georganas et al. 2018, "Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures";
Liu et al. 2019, "Optimizing CNN Model Inference on CPUs"). Weights stay as they are, ``(co, ci / groups, kernel...)``:
constant ones are packed in the order of use anyway. Element-wise operators, borders, pooling and concatenations are those
of any other data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Scalar
from ansorlite.te.tensor import Tensor
from ansorlite.topi.conv import axis_names
from ansorlite.topi.padding import pad
from ansorlite.topi.wide import narrow, wide
from ansorlite.topi.windows import window


def blocked_conv(
    x: Tensor,
    weight: Tensor,
    *,
    block: int,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    result: str | None = None,
) -> Tensor:
    """:func:`ansorlite.topi.conv.conv` with a blocked result ``(n, co / block, ..., block)``.

    Args:
        x: blocked ``(n, ci / b, spatial..., b)``, or plain ``(n, ci, spatial...)``; its rank says which.
        result: dtype of the sums; by default that of the operands.

    Raises:
        ExpressionError: ranks, channels or groups that do not fit together, or a group's channels that are no whole blocks.
    """
    total = convolve_blocks(
        x,
        weight,
        lambda value, tap, _: wide(value) * wide(tap),
        block=block,
        strides=strides,
        before=before,
        after=after,
        dilations=dilations,
        groups=groups,
    )
    return narrow(total, result or dtypes.promote(x.dtype, weight.dtype))


def convolve_blocks(
    x: Tensor,
    weight: Tensor,
    product: Callable[[Expr, Expr, Expr], Expr],
    *,
    block: int,
    border: Scalar = 0,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    name: str = "conv",
) -> Tensor:
    """:func:`blocked_conv`, with something else in the place of a product, as in :func:`ansorlite.topi.conv.convolve`."""
    rank = weight.ndim - 2
    blocked = x.ndim == rank + 3
    if rank < 1 or not (blocked or x.ndim == rank + 2):
        raise ExpressionError(f"blocked_conv needs data of the weight's rank or one more, not {x.shape} and {weight.shape}")
    outputs, depth = weight.shape[:2]
    inner = x.shape[-1] if blocked else 1
    channels = x.shape[1] * inner
    if groups < 1 or channels != depth * groups or outputs % groups:
        raise ExpressionError(f"blocked_conv: {channels} channels, weight {weight.shape} and {groups} groups do not fit together")
    depthwise = depth == 1 and groups == channels == outputs and inner == block
    whole = depthwise or (depth % inner == 0 and (groups == 1 or (outputs // groups) % block == 0))
    if outputs % block or not whole:
        raise ExpressionError(
            f"blocked_conv: {groups} groups of {channels} and {outputs} channels are no whole blocks of {inner} and {block}"
        )

    slide = window(weight.shape[2:], strides=strides, before=before, after=after, dilations=dilations)
    spatial = x.shape[2 : 2 + rank]
    lead, tail = (0, 0), (0,) * (x.ndim - 2 - rank)
    padded = pad(x, before=(*lead, *slide.before, *tail), after=(*lead, *slide.after, *tail), value=border)
    taps = [te.reduce_axis(extent, name=label) for extent, label in zip(slide.kernel, axis_names("r", rank), strict=True)]
    slices = 1 if depthwise else depth // inner
    rb, rc = te.reduce_axis(slices, name="rb"), te.reduce_axis(inner, name="rc")

    def element(n: Expr, co: Expr, *rest: Expr) -> Expr:
        *places, lane = rest
        at = [p * s + tap * d for p, s, tap, d in zip(places, slide.strides, taps, slide.dilations, strict=True)]
        filters = co * block + lane
        if depthwise:
            return te.sum(product(padded[(n, co, *at, lane)], weight[(filters, 0, *taps)], filters), axis=taps)
        source = rb if groups == 1 else co // (outputs // groups // block) * slices + rb
        if not blocked:
            return te.sum(product(padded[(n, source, *at)], weight[(filters, rb, *taps)], filters), axis=[rb, *taps])
        value, tap = padded[(n, source, *at, rc)], weight[(filters, rb * inner + rc, *taps)]
        return te.sum(product(value, tap, filters), axis=[rb, *taps, rc])

    shape = (x.shape[0], outputs // block, *slide.outputs(spatial), block)
    return te.compute(shape, element, name=f"depthwise_{name}" if depthwise else name)
