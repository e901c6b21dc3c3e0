"""Operators on quantised tensors: small integers that stand for ``(q - zero) * scale``.

Products of them are summed in int32, with the zero points subtracted from the factors: the form in which dot-product
instructions are found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.conv import convolve
from ansorlite.topi.matmul import multiply_matrices


def _at(parameter: Tensor, axes: Sequence[Expr], axis: int, block: int) -> Expr:
    """The scale or zero point of an element: one for all, one for each position along ``axis``, or one for each block."""
    if parameter.ndim == 0:
        return parameter[()]
    if block:
        return parameter[tuple(a // block if d == axis else a for d, a in enumerate(axes))]
    return parameter[0] if parameter.shape[0] == 1 else parameter[axes[axis]]


def _check(x: Tensor, parameter: Tensor, axis: int, block: int) -> None:
    expected = tuple(-(-e // block) if d == axis else e for d, e in enumerate(x.shape)) if block else None
    fits = parameter.shape == expected if block else parameter.shape in ((), (1,), x.shape[axis : axis + 1])
    if parameter.ndim and not fits:
        raise ExpressionError(f"a scale or zero point of shape {parameter.shape} does not fit {x.shape} along dimension {axis}")


def _saturated(value: Expr, zero: Expr | None, dtype: str) -> Expr:
    """``value``, a float32, rounded (halves to even), shifted by ``zero``, and limited to what ``dtype`` can hold."""
    info = np.iinfo(dtype)
    shifted = te.round(value) if zero is None else te.round(value) + te.cast(zero, "float32")
    return te.cast(te.minimum(te.maximum(shifted, float(info.min)), float(info.max)), dtype)


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


def requantize(total: Tensor, factor: Tensor, zero: Tensor, *, axis: int) -> Tensor:
    """``round(total * factor) + zero`` in the dtype of ``zero``, for sums of products in int32.

    ``factor`` and ``zero`` are scalars, or there is one for each position along ``axis``.
    """
    for parameter in (factor, zero):
        _check(total, parameter, axis, 0)

    def element(*axes: Expr) -> Expr:
        value = te.cast(total[axes], "float32") * _at(factor, axes, axis, 0)
        return _saturated(value, _at(zero, axes, axis, 0), zero.dtype)

    return te.compute(total.shape, element, name="requantize")


def _difference(value: Expr, zero: Expr | None) -> Expr:
    wide = te.cast(value, "int32")
    return wide if zero is None else wide - te.cast(zero, "int32")


def integer_matmul(a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Tensor:
    """``(a - a_zero) @ (b - b_zero)`` in int32; there is one zero point, or one for each row of ``a``, each column of ``b``."""

    def product(left: Expr, right: Expr, row: Expr | None, column: Expr | None) -> Expr:
        zeros = [
            None if zero is None else zero[()] if zero.ndim == 0 else zero[0 if zero.shape == (1,) or place is None else place]
            for zero, place in ((a_zero, row), (b_zero, column))
        ]
        return _difference(left, zeros[0]) * _difference(right, zeros[1])

    return multiply_matrices(a, b, product, "integer_matmul")


def integer_conv(
    x: Tensor,
    weight: Tensor,
    weight_zero: Tensor | None = None,
    *,
    zero: int = 0,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Tensor:
    """:func:`ansorlite.topi.conv.conv` of ``x - zero`` and ``weight - weight_zero`` in int32; the border is ``zero``.

    There is one zero point of the weight, or one for each output channel.
    """
    shift = te.cast(zero, x.dtype) if zero else None

    def product(value: Expr, tap: Expr, channel: Expr) -> Expr:
        own = weight_zero
        tap_zero = None if own is None else own[()] if own.ndim == 0 else own[0 if own.shape == (1,) else channel]
        return _difference(value, shift) * _difference(tap, tap_zero)

    return convolve(
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
