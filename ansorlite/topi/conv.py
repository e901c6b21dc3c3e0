"""Convolutions over any number of spatial dimensions, channels first: ``(n, c, spatial...)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Scalar
from ansorlite.te.tensor import Tensor
from ansorlite.topi.padding import pad
from ansorlite.topi.wide import narrow, wide
from ansorlite.topi.windows import window

_SPATIAL = ("d", "h", "w")


def axis_names(prefix: str, rank: int) -> list[str]:
    """A name for each spatial dimension: ``rd``, ``rh``, ``rw``, or the last of these."""
    return [prefix + label for label in _SPATIAL[-rank:]] if rank <= len(_SPATIAL) else [f"{prefix}{d}" for d in range(rank)]


def conv(
    x: Tensor,
    weight: Tensor,
    *,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    result: str | None = None,
) -> Tensor:
    """Cross-correlation of ``x (n, ci, spatial...)`` with ``weight (co, ci / groups, kernel...)`` → ``(n, co, ...)``.

    The border is a stage of its own (:func:`ansorlite.topi.padding.pad`). Depthwise convolution is ``groups == ci``.

    Args:
        result: dtype of the sums; by default that of the operands.

    Raises:
        ExpressionError: ranks, channels or groups that do not fit together, or a kernel larger than the padded data.
    """
    total = convolve(
        x,
        weight,
        lambda value, tap, _: wide(value) * wide(tap),
        strides=strides,
        before=before,
        after=after,
        dilations=dilations,
        groups=groups,
    )
    return narrow(total, result or dtypes.promote(x.dtype, weight.dtype))


def convolve(
    x: Tensor,
    weight: Tensor,
    product: Callable[[Expr, Expr, Expr], Expr],
    *,
    border: Scalar = 0,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    name: str = "conv",
) -> Tensor:
    """:func:`conv`, with something else in the place of a product of ``(element of x, element of weight, output channel)``.

    Args:
        border: the elements around the data.
    """
    if x.ndim < 3 or weight.ndim != x.ndim:
        raise ExpressionError(f"conv needs data (n, c, spatial...) and a weight of that rank, not {x.shape} and {weight.shape}")
    outputs, depth = weight.shape[:2]
    if groups < 1 or x.shape[1] != depth * groups or outputs % groups:
        raise ExpressionError(f"conv: {x.shape[1]} channels, weight {weight.shape} and {groups} groups do not fit together")
    kernel = weight.shape[2:]
    slide = window(kernel, strides=strides, before=before, after=after, dilations=dilations)
    shape = (x.shape[0], outputs, *slide.outputs(x.shape[2:]))
    padded = pad(x, before=(0, 0, *slide.before), after=(0, 0, *slide.after), value=border)

    taps = [te.reduce_axis(extent, name=label) for extent, label in zip(kernel, axis_names("r", len(kernel)), strict=True)]
    rc = te.reduce_axis(depth, name="rc")
    share = outputs // groups

    def element(n: Expr, co: Expr, *spatial: Expr) -> Expr:
        places = [
            (s * stride if stride > 1 else s) + (tap * dilation if dilation > 1 else tap)
            for s, stride, tap, dilation in zip(spatial, slide.strides, taps, slide.dilations, strict=True)
        ]
        if depth == 1 and groups > 1:
            # No channel to sum over: one filter, or a few, for each input channel.
            own = padded[(n, co // share if share > 1 else co, *places)]
            return te.sum(product(own, weight[(co, 0, *taps)], co), axis=taps)
        channel = rc if groups == 1 else (co // share) * depth + rc
        return te.sum(product(padded[(n, channel, *places)], weight[(co, rc, *taps)], co), axis=[rc, *taps])

    return te.compute(shape, element, name=name if depth > 1 or groups == 1 else f"depthwise_{name}")


def conv_transpose(
    x: Tensor,
    weight: Tensor,
    *,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    output_padding: Sequence[int] | None = None,
    result: str | None = None,
) -> Tensor:
    """Transposed convolution of ``x (n, ci, spatial...)`` with ``weight (ci, co / groups, kernel...)`` → ``(n, co, ...)``.

    The gradient of :func:`conv` with respect to its data. ``before`` and ``after`` elements are cut off at the ends,
    ``output_padding`` more rows are computed at the end. An output at ``p`` meets the taps ``p % stride``,
    ``p % stride + stride``, ... and no others, so only those are multiplied; where the stride does not divide the kernel,
    the last of them is zero for some outputs.

    Args:
        result: dtype of the sums; by default that of the operands.

    Raises:
        ExpressionError: ranks, channels or groups that do not fit together, or an empty result.
    """
    if x.ndim < 3 or weight.ndim != x.ndim:
        raise ExpressionError(
            f"conv_transpose needs data (n, c, spatial...) and a weight of that rank, not {x.shape} and {weight.shape}"
        )
    depth, share = weight.shape[:2]
    if groups < 1 or x.shape[1] != depth or depth % groups:
        raise ExpressionError(f"conv_transpose: {x.shape[1]} channels, weight {weight.shape} and {groups} groups do not fit")
    slide = window(weight.shape[2:], strides=strides, before=before, after=after, dilations=dilations)
    extra = tuple(output_padding) if output_padding is not None else (0,) * len(slide.kernel)
    extents = tuple(
        (e - 1) * s + span - b - a + o
        for e, s, span, b, a, o in zip(x.shape[2:], slide.strides, slide.span, slide.before, slide.after, extra, strict=True)
    )
    if min(extents) < 1:
        raise ExpressionError(f"conv_transpose of {x.shape} with pads {slide.before} and {slide.after} leaves nothing")

    # How many taps meet one output, and the borders that make every read of the data legal.
    counts = [-(-span // s) for span, s in zip(slide.span, slide.strides, strict=True)]
    lead = [c - 1 for c in counts]
    tail = [
        max(0, (o - 1 + b) // s - (e - 1)) for o, b, s, e in zip(extents, slide.before, slide.strides, x.shape[2:], strict=True)
    ]
    padded = pad(x, before=(0, 0, *lead), after=(0, 0, *tail))
    taps = _spread(weight, slide.dilations)

    steps = [te.reduce_axis(extent, name=name) for extent, name in zip(counts, axis_names("r", len(counts)), strict=True)]
    inner = depth // groups
    rc = te.reduce_axis(inner, name="rc")

    def element(n: Expr, co: Expr, *spatial: Expr) -> Expr:
        shifted = [p + b if b else p for p, b in zip(spatial, slide.before, strict=True)]
        places = [
            (p // s if s > 1 else p) + (le - step) for p, s, le, step in zip(shifted, slide.strides, lead, steps, strict=True)
        ]
        tap = [step * s + p % s if s > 1 else step for p, s, step in zip(shifted, slide.strides, steps, strict=True)]
        channel = rc if groups == 1 else (co // share) * inner + rc
        filters = co if groups == 1 else co % share
        factor = taps[(channel, filters, *tap)]
        inside = [t < span for t, c, s, span in zip(tap, counts, slide.strides, slide.span, strict=True) if c * s > span]
        if inside:
            factor = te.if_then_else(te.all(*inside), factor, te.cast(0, weight.dtype))
        return te.sum(wide(padded[(n, channel, *places)]) * wide(factor), axis=[rc, *steps])

    total = te.compute((x.shape[0], share * groups, *extents), element, name="conv_transpose")
    return narrow(total, result or dtypes.promote(x.dtype, weight.dtype))


def _spread(weight: Tensor, dilations: Sequence[int]) -> Tensor:
    """The taps of ``weight``, ``dilations`` apart with zeros between them."""
    if all(d == 1 for d in dilations):
        return weight

    def element(ci: Expr, co: Expr, *taps: Expr) -> Expr:
        hits = [tap % dilation == 0 for tap, dilation in zip(taps, dilations, strict=True) if dilation > 1]
        places = [tap // dilation if dilation > 1 else tap for tap, dilation in zip(taps, dilations, strict=True)]
        return te.if_then_else(te.all(*hits), weight[(ci, co, *places)], te.cast(0, weight.dtype))

    spans = [(extent - 1) * dilation + 1 for extent, dilation in zip(weight.shape[2:], dilations, strict=True)]
    return te.compute((*weight.shape[:2], *spans), element, name="taps")
