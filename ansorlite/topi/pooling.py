"""Pooling over any number of spatial dimensions, channels first: ``(n, c, spatial...)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ansorlite import te
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Scalar
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import elementwise
from ansorlite.topi.padding import pad
from ansorlite.topi.reduction import reduce_max, reduce_mean, reduce_sum
from ansorlite.topi.windows import Window, window


def lowest(dtype: str) -> Scalar:
    """The start of a maximum: no value of ``dtype`` is lower."""
    if dtype == "bool":
        return False
    return -math.inf if dtypes.is_float(dtype) else int(np.iinfo(dtype).min)


def reduce_windows(x: Tensor, slide: Window, fill: Scalar, fold: Callable[..., Expr], name: str) -> Tensor:
    """``fold`` over each window of ``x``, whose border is ``fill``."""
    spatial = x.shape[2:]
    shape = (*x.shape[:2], *slide.outputs(spatial))
    padded = pad(x, before=(0, 0, *slide.before), after=(0, 0, *slide.reach(spatial)), value=fill)
    taps = [te.reduce_axis(extent, name=f"r{d}") for d, extent in enumerate(slide.kernel)]

    def element(n: Expr, c: Expr, *places: Expr) -> Expr:
        indices = [
            (p * s if s > 1 else p) + (tap * d if d > 1 else tap)
            for p, s, tap, d in zip(places, slide.strides, taps, slide.dilations, strict=True)
        ]
        return fold(padded[(n, c, *indices)], axis=taps)

    return te.compute(shape, element, name=name)


def max_pool(
    x: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of each window.

    Raises:
        ExpressionError: a window that does not fit the data.
    """
    slide = window(kernel, strides=strides, before=before, after=after, dilations=dilations, ceil_mode=ceil_mode)
    return reduce_windows(x, slide, lowest(x.dtype), te.max, "max_pool")


def max_pool_places(
    x: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    ceil_mode: bool = False,
    by_column: bool = False,
) -> Tensor:
    """Where each window's maximum is, of equal ones the first: its number, int64, among all elements of ``x``.

    Elements are numbered row by row, or, ``by_column``, those of a channel by its first dimension first.

    Raises:
        ExpressionError: a window that does not fit the data.
    """
    slide = window(kernel, strides=strides, before=before, after=after, dilations=dilations, ceil_mode=ceil_mode)
    spatial = x.shape[2:]
    best = reduce_windows(x, slide, lowest(x.dtype), te.max, "max_pool")
    padded = pad(x, before=(0, 0, *slide.before), after=(0, 0, *slide.reach(spatial)), value=lowest(x.dtype))
    taps = [te.reduce_axis(extent, name=f"r{d}") for d, extent in enumerate(slide.kernel)]
    count = math.prod(slide.kernel)

    def first_tap(*axes: Expr) -> Expr:
        places = [p * s + t * d for p, s, t, d in zip(axes[2:], slide.strides, taps, slide.dilations, strict=True)]
        value = padded[(*axes[:2], *places)]
        inside = [te.all(p >= low, p < low + extent) for p, low, extent in zip(places, slide.before, spatial, strict=True)]
        found = te.all(*inside, te.any(value == best[axes], value != value))
        number: Expr | int = 0
        for tap, extent in zip(taps, slide.kernel, strict=True):
            number = number * extent + tap
        return te.min(te.if_then_else(found, te.cast(number, "int64"), te.cast(count - 1, "int64")), axis=taps)

    first = te.compute(best.shape, first_tap, name="first_tap")

    def place(*axes: Expr) -> Expr:
        rest: Expr = first[axes]
        own: list[Expr] = []
        for p, s, d, low, extent in reversed(
            list(zip(axes[2:], slide.strides, slide.dilations, slide.before, slide.kernel, strict=True))
        ):
            own.insert(0, p * s + (rest % extent) * d - low)
            rest = rest // extent
        number: Expr | int = 0
        for index, extent in list(zip(own, spatial, strict=True))[:: -1 if by_column else 1]:
            number = number * extent + index
        return (axes[0] * x.shape[1] + axes[1]) * math.prod(spatial) + number

    return te.compute(best.shape, place, name="max_pool_places")


def average_pool(
    x: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """The mean of each window: of the elements that are data, or with ``count_include_pad`` of the border too.

    Elements that a last window of ``ceil_mode`` takes from beyond the border never count.

    Raises:
        ExpressionError: a window that does not fit the data.
    """
    slide = window(kernel, strides=strides, before=before, after=after, dilations=dilations, ceil_mode=ceil_mode)
    total = reduce_windows(x, slide, 0, te.sum, "pool_sum")

    def element(*axes: Expr) -> Expr:
        return total[axes] / te.cast(_count(axes[2:], slide, x.shape[2:], count_include_pad), x.dtype)

    return te.compute(total.shape, element, name="average_pool")


def _count(places: Sequence[Expr], slide: Window, extents: Sequence[int], include_pad: bool) -> Expr | int:
    """How many elements of the window at ``places`` count."""
    result: Expr | int = 1
    outputs = slide.outputs(extents)
    for d, place in enumerate(places):
        begin = -slide.before[d] if include_pad else 0
        end = extents[d] + (slide.after[d] if include_pad else 0)
        kernel, dilation = slide.kernel[d], slide.dilations[d]
        last = (outputs[d] - 1) * slide.strides[d] - slide.before[d] + slide.span[d]
        if begin <= -slide.before[d] and last <= end:
            result = result * kernel
            continue
        start = place * slide.strides[d] - slide.before[d]

        def below(bound: int, start: Expr = start, kernel: int = kernel, dilation: int = dilation) -> Expr:
            """How many taps lie before ``bound``."""
            return te.minimum(te.maximum((bound - start + (dilation - 1)) // dilation, 0), kernel)

        result = (below(end) - below(begin)) * result
    return result


def lp_pool(
    x: Tensor,
    *,
    kernel: Sequence[int],
    p: int = 2,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The ``p``-norm of each window.

    Raises:
        ExpressionError: a window that does not fit the data.
    """
    slide = window(kernel, strides=strides, before=before, after=after, dilations=dilations, ceil_mode=ceil_mode)
    powers = elementwise(lambda v: _power(te.abs(v), p), x, name="powers")
    sums = reduce_windows(powers, slide, 0, te.sum, "lp_sum")
    return elementwise(lambda v: _root(v, p), sums, name="lp_pool")


def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    """The ``p``-norm over all spatial dimensions, which stay with extent 1."""
    powers = elementwise(lambda v: _power(te.abs(v), p), x, name="powers")
    return elementwise(lambda v: _root(v, p), reduce_sum(powers, axes=tuple(range(2, x.ndim)), keepdims=True), name="lp_pool")


def _power(v: Expr, p: int) -> Expr:
    return v if p == 1 else v * v if p == 2 else te.power(v, float(p))


def _root(v: Expr, p: int) -> Expr:
    return v if p == 1 else te.sqrt(v) if p == 2 else te.power(v, 1.0 / p)


def global_average_pool(x: Tensor) -> Tensor:
    """The mean over all spatial dimensions, which stay with extent 1."""
    return reduce_mean(x, axes=tuple(range(2, x.ndim)), keepdims=True)


def global_max_pool(x: Tensor) -> Tensor:
    """The maximum over all spatial dimensions, which stay with extent 1."""
    return reduce_max(x, axes=tuple(range(2, x.ndim)), keepdims=True)
