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
from ansorlite.topi.row_major import coordinates, flat
from ansorlite.topi.wide import comparable, narrow, wide
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
    largest = reduce_windows(x, slide, lowest(x.dtype), lambda v, axis: te.max(comparable(v), axis=axis), "max_pool")
    return narrow(largest, x.dtype)


def max_pool_places(
    x: Tensor,
    largest: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    ceil_mode: bool = False,
    column_major: bool = False,
) -> Tensor:
    """Where in ``x`` the first of the ``largest`` elements of each window stands, of all elements in a row: ``int64``.

    NaN is largest.

    Args:
        largest: :func:`max_pool` of ``x``.
        column_major: count along the first spatial dimension first, and not along the last.

    Raises:
        ExpressionError: a window that does not fit the data.
    """
    slide = window(kernel, strides=strides, before=before, after=after, dilations=dilations, ceil_mode=ceil_mode)
    extents, size = x.shape[2:], math.prod(x.shape[2:])
    reach = slide.reach(extents)
    padded = pad(x, before=(0, 0, *slide.before), after=(0, 0, *reach), value=lowest(x.dtype))
    taps = [te.reduce_axis(extent, name=f"r{d}") for d, extent in enumerate(slide.kernel)]

    def element(n: Expr, c: Expr, *spatial: Expr) -> Expr:
        places = [p * s + tap * d for p, s, tap, d in zip(spatial, slide.strides, taps, slide.dilations, strict=True)]
        own = [place - before for place, before in zip(places, slide.before, strict=True)]
        # The border is as low as an element can be, and is none.
        inside = [place >= 0 for place, before in zip(own, slide.before, strict=True) if before]
        inside += [place < extent for place, extent, after in zip(own, extents, reach, strict=True) if after]
        value = padded[(n, c, *places)]
        found = te.all(*inside, te.any(value == largest[(n, c, *spatial)], value != value))
        return te.min(te.if_then_else(found, te.cast(flat(own, extents), "int64"), size), axis=taps)

    first = te.compute(largest.shape, element, name="max_pool_first")

    def place(n: Expr, c: Expr, *spatial: Expr) -> Expr:
        # In a window of nothing but border, no element is the largest.
        found = te.minimum(first[(n, c, *spatial)], size - 1)
        if column_major:
            found = flat(coordinates(found, extents)[::-1], extents[::-1])
        return te.cast((n * x.shape[1] + c) * size, "int64") + found

    return te.compute(largest.shape, place, name="max_pool_places")


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
    total = reduce_windows(x, slide, 0, lambda v, axis: te.sum(wide(v), axis=axis), "pool_sum")

    def element(*axes: Expr) -> Expr:
        return te.cast(total[axes] / te.cast(_count(axes[2:], slide, x.shape[2:], count_include_pad), total.dtype), x.dtype)

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
    powers = elementwise(lambda v: _power(te.abs(wide(v)), p), x, name="powers")
    sums = reduce_windows(powers, slide, 0, te.sum, "lp_sum")
    return elementwise(lambda v: te.cast(_root(v, p), x.dtype), sums, name="lp_pool")


def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    """The ``p``-norm over all spatial dimensions, which stay with extent 1."""
    powers = elementwise(lambda v: _power(te.abs(wide(v)), p), x, name="powers")
    sums = reduce_sum(powers, axes=tuple(range(2, x.ndim)), keepdims=True)
    return elementwise(lambda v: te.cast(_root(v, p), x.dtype), sums, name="lp_pool")


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
