"""Operators on quantised tensors: small integers that stand for ``(q - zero) * scale``.

Products of them are summed in int32, with the zero points subtracted from the factors: the form in which dot-product
instructions are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.blocked import convolve_blocks
from ansorlite.topi.conv import convolve
from ansorlite.topi.elementwise import broadcast_read, elementwise
from ansorlite.topi.matmul import multiply_matrices
from ansorlite.topi.pooling import reduce_windows
from ansorlite.topi.reduction import reduce
from ansorlite.topi.wide import narrow, wide
from ansorlite.topi.windows import window


def _at(parameter: Tensor, axes: Sequence[Expr], axis: int, block: int) -> Expr:
    """The scale or zero point of an element: one for all, for each position along ``axis``, for each block, or broadcast."""
    if parameter.ndim == 0:
        return parameter[()]
    if parameter.ndim == len(axes) > 1 and not block:
        return parameter[tuple(0 if extent == 1 else a for extent, a in zip(parameter.shape, axes, strict=True))]
    if block:
        return parameter[tuple(a // block if d == axis else a for d, a in enumerate(axes))]
    return parameter[0] if parameter.shape[0] == 1 else parameter[axes[axis]]


def _check(x: Tensor, parameter: Tensor, axis: int, block: int) -> None:
    expected = tuple(-(-e // block) if d == axis else e for d, e in enumerate(x.shape)) if block else None
    spread = parameter.ndim == x.ndim and all(own in (1, extent) for own, extent in zip(parameter.shape, x.shape, strict=True))
    fits = parameter.shape == expected if block else spread or parameter.shape in ((), (1,), x.shape[axis : axis + 1])
    if parameter.ndim and not fits:
        raise ExpressionError(f"a scale or zero point of shape {parameter.shape} does not fit {x.shape} along dimension {axis}")


def _steps(value: Expr, zero: Expr | None, dtype: str) -> Expr:
    """``value``, a float32, rounded (halves to even): what ``dtype``, of at most 16 bits, can hold with ``zero`` added.

    It is limited before it is rounded, which gives the same: then a processor may round and convert at once.
    """
    info = np.iinfo(dtype)
    low, high = float(info.min), float(info.max)
    if zero is None:
        return te.round(te.minimum(te.maximum(value, low), high))
    shift = te.cast(zero, "float32")
    return te.round(te.minimum(te.maximum(value, low - shift), high - shift))


def _saturated(value: Expr, zero: Expr | None, dtype: str) -> Expr:
    """``value`` rounded, shifted by ``zero``, and limited to what ``dtype`` can hold."""
    steps = _steps(value, zero, dtype)
    if zero is None:
        return te.cast(steps, dtype)
    # Both fit twice the bits of ``dtype``, and only their sum has to fit ``dtype``.
    return te.cast(te.cast(steps, "int16" if np.iinfo(dtype).bits == 8 else "int32"), dtype) + zero


def quantize(x: Tensor, scale: Tensor, zero: Tensor | None = None, *, dtype: str, axis: int = 0, block: int = 0) -> Tensor:
    """``round(x / scale) + zero``, limited to what ``dtype``, of at most 16 bits, can hold."""
    for parameter in (scale, zero):
        if parameter is not None:
            _check(x, parameter, axis, block)

    def element(*axes: Expr) -> Expr:
        value = te.cast(x[axes], "float32") / te.cast(_at(scale, axes, axis, block), "float32")
        return _saturated(value, None if zero is None else _at(zero, axes, axis, block), dtype)

    return te.compute(x.shape, element, name="quantize")


def dequantize(x: Tensor, scale: Tensor, zero: Tensor | None = None, *, axis: int = 0, block: int = 0) -> Tensor:
    """``(x - zero) * scale`` in the dtype of ``scale``."""
    for parameter in (scale, zero):
        if parameter is not None:
            _check(x, parameter, axis, block)

    def element(*axes: Expr) -> Expr:
        value = te.cast(x[axes], "int32")
        if zero is not None:
            value = value - te.cast(_at(zero, axes, axis, block), "int32")
        factor = _at(scale, axes, axis, block)
        return te.cast(te.cast(value, "float32") * te.cast(factor, "float32"), factor.dtype)

    return te.compute(x.shape, element, name="dequantize")


def dynamic_scale(lowest: Tensor, highest: Tensor) -> Tensor:
    """The step of 255 from ``lowest`` to ``highest``, scalars, and to 0 if that is outside; 1 if it would be 0."""

    def element() -> Expr:
        width = te.maximum(highest[()], 0.0) - te.minimum(lowest[()], 0.0)
        return te.if_then_else(width == 0.0, te.cast(1.0, "float32"), width / 255.0)

    return te.compute((), element, name="dynamic_scale")


def dynamic_zero(lowest: Tensor, scale: Tensor) -> Tensor:
    """The byte that stands for 0 where 0 stands for ``lowest``, or for 0 if that is more."""

    def element() -> Expr:
        zero = 0.0 - te.minimum(lowest[()], 0.0) / scale[()]
        return te.cast(te.round(te.maximum(te.minimum(zero, 255.0), 0.0)), "uint8")

    return te.compute((), element, name="dynamic_zero")


def rescale(total: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """``total``, sums of products in int32, times both scales; the second may be one for each column."""
    return elementwise(lambda v, a, b: te.cast(v, "float32") * (a * b), total, first, second, name="rescale")


def requantize(total: Tensor, factor: Tensor, zero: Tensor, *, axis: int) -> Tensor:
    """``round(total * factor) + zero`` in the dtype of ``zero``, for sums of products in int32.

    ``factor`` and ``zero`` are scalars, or there is one for each position along ``axis``, or they are broadcast.
    """
    for parameter in (factor, zero):
        _check(total, parameter, axis, 0)

    def element(*axes: Expr) -> Expr:
        value = te.cast(total[axes], "float32") * _at(factor, axes, axis, 0)
        return _saturated(value, _at(zero, axes, axis, 0), zero.dtype)

    return te.compute(total.shape, element, name="requantize")


def requantize_real(total: Tensor, factor: Tensor, zero: Tensor, shift: Tensor, scale: Tensor, *, axis: int) -> Tensor:
    """``(requantize(total, factor, zero) - shift) * scale`` in float32, to the bit, without the bytes in between.

    ``shift`` and ``scale`` are scalars.
    """
    for parameter in (factor, zero):
        _check(total, parameter, axis, 0)

    def element(*axes: Expr) -> Expr:
        value = te.cast(total[axes], "float32") * _at(factor, axes, axis, 0)
        offset = _at(zero, axes, axis, 0)
        moved = te.cast(te.cast(offset, "int32") - te.cast(shift[()], "int32"), "float32")
        return (_steps(value, offset, zero.dtype) + moved) * scale[()]

    return te.compute(total.shape, element, name="requantize_real")


def saturate(x: Tensor, zero: Tensor) -> Tensor:
    """``round(x) + zero`` in the dtype of ``zero``, a scalar: :func:`quantize` of what is divided by its scale already."""
    return te.compute(x.shape, lambda *axes: _saturated(x[axes], zero[()], zero.dtype), name="saturate")


def _wide(value: Expr) -> Expr:
    return te.cast(value, "int32")


def _zero_at(zero: Tensor, place: Expr | None) -> Expr:
    """The zero point of a row or column, in int32: one for all, or one for each."""
    at = () if zero.ndim == 0 else 0 if zero.shape == (1,) or place is None else place
    return _wide(zero[at])


def _factor(value: Expr, zero: Tensor | None, place: Expr | None, most: int | None = None) -> Expr:
    """``value`` less its zero point. That it is within ``-most`` and ``most``, if so given, is told to interval arithmetic."""
    shifted = _wide(value) if zero is None else _wide(value) - _zero_at(zero, place)
    return shifted if most is None else te.maximum(te.minimum(shifted, most), -most)


def integer_matmul(
    a: Tensor,
    b: Tensor,
    a_zero: Tensor | None = None,
    b_zero: Tensor | None = None,
    *,
    most: int | None = None,
    apart: bool = False,
) -> Tensor:
    """``(a - a_zero) @ (b - b_zero)`` in int32; there is one zero point, or one for each row of ``a``, each column of ``b``.

    Args:
        most: what no ``b - b_zero`` exceeds in magnitude, if that is known: smaller factors may be multiplied faster.
        apart: compute it as ``a @ (b - b_zero) - a_zero * sum(b - b_zero)``, in which the elements of ``a`` stay bytes. It
            pays where ``b`` is constant, for then the sums are.
    """

    def factor(element: Expr, column: Expr | None) -> Expr:
        return _factor(element, b_zero, column, most)

    def product(left: Expr, right: Expr, row: Expr | None, column: Expr | None) -> Expr:
        return _factor(left, None if apart else a_zero, row) * factor(right, column)

    total = multiply_matrices(a, b, product, "integer_matmul")
    if not apart or a_zero is None:
        return total
    zero, sums = a_zero, _column_sums(b, factor)
    batch = total.ndim - (a.ndim > 1) - (b.ndim > 1)

    def corrected(*axes: Expr) -> Expr:
        row = axes[batch] if a.ndim > 1 else None
        columns = range(total.ndim - (b.ndim > 1), total.ndim)
        places = (*range(batch), *columns)
        sum_ = broadcast_read(sums, tuple(axes[d] for d in places), tuple(total.shape[d] for d in places))
        return total[axes] - _zero_at(zero, row) * sum_

    return te.compute(total.shape, corrected, name="corrected")


def _column_sums(b: Tensor, factor: Callable[[Expr, Expr | None], Expr]) -> Tensor:
    """The sums down the columns of the matrices ``b``, or of the vector, of a function of ``(element, column)``."""
    k = te.reduce_axis(b.shape[-2] if b.ndim > 1 else b.shape[0], name="k")

    def element(*axes: Expr) -> Expr:
        value = b[(*axes[:-1], k, axes[-1])] if axes else b[k]
        return te.sum(factor(value, axes[-1] if axes else None), axis=k)

    return te.compute((*b.shape[:-2], b.shape[-1]) if b.ndim > 1 else (), element, name="column_sums")


def integer_conv(
    x: Tensor,
    weight: Tensor,
    weight_zero: Tensor | None = None,
    *,
    zero: int = 0,
    most: int | None = None,
    apart: bool = False,
    block: int | None = None,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Tensor:
    """:func:`ansorlite.topi.conv.conv` of ``x - zero`` and ``weight - weight_zero`` in int32; the border is ``zero``.

    There is one zero point of the weight, or one for each output channel.

    Args:
        most: what no ``weight - weight_zero`` exceeds in magnitude, if that is known: smaller factors may be multiplied faster.
        apart: compute it as a convolution of ``x``, less ``zero`` times the sum of a channel's weights, so that the elements
            of ``x`` stay bytes. It pays where the weight is constant, for then the sums are.
        block: channels of the result side by side, as in :func:`ansorlite.topi.blocked.blocked_conv`, of plain data or of data
            in blocks, in which the channels of a word are neighbours; by default the result is plain.
    """

    def factor(tap: Expr, channel: Expr) -> Expr:
        return _factor(tap, weight_zero, channel, most)

    def product(value: Expr, tap: Expr, channel: Expr) -> Expr:
        return (_wide(value) if apart or not zero else _wide(value) - zero) * factor(tap, channel)

    total = (convolve if block is None else partial(convolve_blocks, block=block))(
        x,
        weight,
        product,
        border=zero,
        strides=strides,
        before=before,
        after=after,
        dilations=dilations,
        groups=groups,
        name="integer_conv",
    )
    if not zero or not apart:
        return total
    taps = [te.reduce_axis(extent, name=f"k{d}") for d, extent in enumerate(weight.shape[1:])]
    sums = te.compute(weight.shape[:1], lambda co: te.sum(factor(weight[(co, *taps)], co), axis=taps), name="tap_sums")

    def corrected(*axes: Expr) -> Expr:
        return total[axes] - sums[axes[1] if block is None else axes[1] * block + axes[-1]] * zero

    return te.compute(total.shape, corrected, name="corrected")


def packed_matmul(a: Tensor, weight: Tensor, scale: Tensor, zero: Tensor | None = None, *, bits: int) -> Tensor:
    """``a @ w.T`` for a weight of a few bits, several in a byte, the least bits first; it is unpacked where it is multiplied.

    Args:
        a: (..., inner) of floats.
        weight: (outputs, blocks, bytes), unsigned bytes, of ``inner`` numbers of ``bits`` bits in a row.
        scale: (outputs, blocks): of each block of a row.
        zero: the same for zero points, as floats; half of the range if left out.

    Raises:
        ExpressionError: shapes that do not fit together, or bits that no byte is made of.
    """
    parts = 8 // bits if bits in (2, 4, 8) else 0
    fits = a.ndim > 0 and weight.ndim == 3 and scale.shape == weight.shape[:2] and (zero is None or zero.shape == scale.shape)
    if not parts or not fits or a.shape[-1] != weight.shape[1] * weight.shape[2] * parts:
        raise ExpressionError(
            f"packed_matmul: {a.shape}, weights {weight.shape} of {bits} bits and scales {scale.shape} do not fit"
        )
    block = weight.shape[2] * parts
    kb, kj = te.reduce_axis(weight.shape[1], name="kb"), te.reduce_axis(weight.shape[2], name="kj")
    part = te.reduce_axis(parts, name="part")

    def element(*axes: Expr) -> Expr:
        *rows, column = axes
        byte = weight[(column, kb, kj)]
        level = (byte >> te.cast(part * bits, "uint8")) & te.cast((1 << bits) - 1, "uint8") if parts > 1 else byte
        middle = te.cast(1 << (bits - 1), "float32") if zero is None else te.cast(zero[(column, kb)], "float32")
        factor = (te.cast(level, "float32") - middle) * te.cast(scale[(column, kb)], "float32")
        place = kb * block + kj * parts + part if parts > 1 else kb * block + kj
        return te.sum(wide(a[(*rows, place)]) * factor, axis=[kb, kj, part] if parts > 1 else [kb, kj])

    return narrow(te.compute((*a.shape[:-1], weight.shape[0]), element, name="packed_matmul"), a.dtype)


def integer_sum(x: Tensor, *, zero: int = 0, axes: Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The sum of ``x - zero`` over ``axes`` in int32."""
    return reduce(te.sum, x, axes, keepdims, "integer_sum", lambda v: _wide(v) - zero if zero else _wide(v))


def integer_window_sum(
    x: Tensor,
    *,
    zero: int = 0,
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """The sum of ``x - zero`` over each window in int32; the border is ``zero``.

    Raises:
        ExpressionError: a window that does not fit the data.
    """
    slide = window(kernel, strides=strides, before=before, after=after, dilations=dilations)
    return reduce_windows(x, slide, zero, lambda v, axis: te.sum(_wide(v) - zero if zero else _wide(v), axis=axis), "window_sum")
