"""Operators that compute each element from the elements at the same place, after numpy's broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Scalar
from ansorlite.te.tensor import Tensor


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that numpy broadcasts ``shapes`` to.

    Raises:
        ExpressionError: they do not broadcast.
    """
    try:
        return tuple(int(extent) for extent in np.broadcast_shapes(*shapes))
    except ValueError:
        raise ExpressionError(f"shapes {' and '.join(map(str, shapes))} do not broadcast") from None


def broadcast_read(tensor: Tensor, axes: tuple[Expr, ...], shape: tuple[int, ...]) -> Expr:
    """The element of ``tensor`` at ``axes`` of a result of ``shape``: dimensions of extent 1 are read at 0."""
    own = axes[len(axes) - tensor.ndim :]
    extents = shape[len(shape) - tensor.ndim :]
    indices = tuple(axis if tensor.shape[d] == extents[d] else 0 for d, axis in enumerate(own))
    return tensor[indices]


def elementwise(function: Callable[..., Expr | Scalar], *tensors: Tensor, name: str) -> Tensor:
    """``function`` of the elements of ``tensors``, which are broadcast together.

    Raises:
        ExpressionError: the shapes do not broadcast, or the function refuses the dtypes.
    """
    shape = broadcast_shape(*(tensor.shape for tensor in tensors))

    def element(*axes: Expr) -> Expr | Scalar:
        return function(*(broadcast_read(tensor, axes, shape) for tensor in tensors))

    return te.compute(shape, element, name=name)


# Arithmetic ------------------------------------------------------------------------------------------------------


def add(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x + y, a, b, name="add")


def subtract(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x - y, a, b, name="subtract")


def multiply(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x * y, a, b, name="multiply")


def divide(a: Tensor, b: Tensor) -> Tensor:
    """``a / b``; integers are divided toward zero, as in C."""

    def element(x: Expr, y: Expr) -> Expr:
        if dtypes.is_float(x.dtype) or dtypes.is_float(y.dtype):
            return x / y
        quotient = x // y
        if not dtypes.is_signed(quotient.dtype):
            return quotient
        return te.if_then_else(te.all(x % y != 0, (x < 0) ^ (y < 0)), quotient + 1, quotient)

    return elementwise(element, a, b, name="divide")


def modulo(a: Tensor, b: Tensor) -> Tensor:
    """``a % b`` with the sign of ``b``, as Python's."""
    return elementwise(lambda x, y: x % y, a, b, name="modulo")


def remainder(a: Tensor, b: Tensor) -> Tensor:
    """``a`` less the multiple of ``b`` towards 0, with the sign of ``a``: C's ``fmod``."""

    def element(x: Expr, y: Expr) -> Expr:
        if dtypes.is_float(x.dtype):
            # Of sizes it is exact: a rest that is moved by a divisor would be rounded.
            size = te.abs(x) % te.abs(y)
            return te.if_then_else(x < 0, -size, size)
        rest = x % y
        zero = te.cast(0, rest.dtype)
        # Python's remainder has the sign of the divisor; it is off by one divisor where the signs differ.
        return te.if_then_else(te.all(rest != zero, (rest < zero) != (x < zero)), rest - y, rest)

    return elementwise(element, a, b, name="remainder")


def power(a: Tensor, b: Tensor) -> Tensor:
    """``a ** b`` in the dtype of ``a``."""
    return elementwise(lambda x, y: te.cast(te.power(x, y), a.dtype), a, b, name="power")


def maximum(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(te.maximum, a, b, name="maximum")


def minimum(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(te.minimum, a, b, name="minimum")


# Comparison, logic, choice ---------------------------------------------------------------------------------------


def equal(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x == y, a, b, name="equal")


def less(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x < y, a, b, name="less")


def less_equal(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x <= y, a, b, name="less_equal")


def greater(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x > y, a, b, name="greater")


def greater_equal(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x >= y, a, b, name="greater_equal")


def logical_and(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: te.all(x, y), a, b, name="logical_and")


def logical_or(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: te.any(x, y), a, b, name="logical_or")


def logical_xor(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x ^ y, a, b, name="logical_xor")


def logical_not(x: Tensor) -> Tensor:
    return elementwise(lambda v: ~v, x, name="logical_not")


def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return elementwise(te.if_then_else, condition, a, b, name="where")


def clip(x: Tensor, *, low: float | int | None = None, high: float | int | None = None) -> Tensor:
    """``x`` limited to ``[low, high]``; ``None`` is no limit."""

    def element(v: Expr) -> Expr:
        above = v if low is None else te.maximum(v, low)
        return above if high is None else te.minimum(above, high)

    return elementwise(element, x, name="clip")


# One operand -----------------------------------------------------------------------------------------------------


def cast(x: Tensor, *, dtype: str) -> Tensor:
    """``x`` as ``numpy.ndarray.astype`` converts it; to bool, whether it is not 0."""
    if dtype == "bool":
        return elementwise(lambda v: v if v.dtype == "bool" else v != 0, x, name="cast")
    return elementwise(lambda v: te.cast(v, dtype), x, name="cast")


def negative(x: Tensor) -> Tensor:
    return elementwise(lambda v: -v, x, name="negative")


def absolute(x: Tensor) -> Tensor:
    return elementwise(te.abs, x, name="absolute")


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; NaN stays NaN."""

    def element(v: Expr) -> Expr:
        below = v if not dtypes.is_float(v.dtype) and not dtypes.is_signed(v.dtype) else te.if_then_else(v < 0, -1, v)
        return te.if_then_else(v > 0, 1, below)

    return elementwise(element, x, name="sign")


def reciprocal(x: Tensor) -> Tensor:
    return elementwise(lambda v: 1.0 / v, x, name="reciprocal")


def sqrt(x: Tensor) -> Tensor:
    return elementwise(te.sqrt, x, name="sqrt")


def exp(x: Tensor) -> Tensor:
    return elementwise(te.exp, x, name="exp")


def log(x: Tensor) -> Tensor:
    return elementwise(te.log, x, name="log")


def erf(x: Tensor) -> Tensor:
    """In the dtype of ``x``; of integers it is that of float32, cut off: 0, but 1 from 4 on and -1 from -4 down."""

    def of_integer(v: Expr) -> Expr:
        one, zero = te.cast(1, v.dtype), te.cast(0, v.dtype)
        inner = te.if_then_else(v >= 4, one, zero)
        return te.if_then_else(v <= -4, -one, inner) if dtypes.is_signed(v.dtype) else inner

    return elementwise(te.erf if dtypes.is_float(x.dtype) else of_integer, x, name="erf")


def tanh(x: Tensor) -> Tensor:
    return elementwise(te.tanh, x, name="tanh")


def floor(x: Tensor) -> Tensor:
    return elementwise(te.floor, x, name="floor")


def ceil(x: Tensor) -> Tensor:
    return elementwise(te.ceil, x, name="ceil")


def round(x: Tensor) -> Tensor:
    """Halves go to the even neighbour."""
    return elementwise(te.round, x, name="round")


def is_infinite(x: Tensor, *, positive: bool = True, negative: bool = True) -> Tensor:
    """Whether each element is an infinity, of the signs that are asked for."""
    limits = [math.inf] * positive + [-math.inf] * negative

    def element(v: Expr) -> Expr:
        return te.any(*(v == limit for limit in limits)) if limits else v < v

    return elementwise(element, x, name="is_infinite")


def is_nan(x: Tensor) -> Tensor:
    return elementwise(lambda v: v != v, x, name="is_nan")
