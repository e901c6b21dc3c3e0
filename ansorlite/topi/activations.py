"""Activation functions of neural networks: element-wise, one operand."""

from __future__ import annotations

import math
from collections.abc import Callable

from ansorlite import te
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import elementwise
from ansorlite.topi.wide import wide


def _rounded_once(function: Callable[[Expr], Expr], x: Tensor, *, name: str) -> Tensor:
    """``function`` of each element: float16 and bfloat16 are computed in float32, as ``1 + e^x`` in them is soon 1."""
    return elementwise(lambda v: te.cast(function(wide(v)), v.dtype), x, name=name)


def relu(x: Tensor) -> Tensor:
    return elementwise(lambda v: te.maximum(v, 0), x, name="relu")


def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return elementwise(lambda v: te.if_then_else(v >= 0, v, v * alpha), x, name="leaky_relu")


def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """``x`` where it is positive, else ``x * slope``; ``slope`` broadcasts to ``x``."""
    return elementwise(lambda v, s: te.if_then_else(v >= 0, v, v * s), x, slope, name="prelu")


def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return elementwise(lambda v: te.if_then_else(v > alpha, v, te.cast(0, v.dtype)), x, name="thresholded_relu")


def shrink(x: Tensor, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """``x`` pulled towards 0 by ``bias`` where it is further from 0 than ``lambd``, else 0; integers wrap around."""

    def element(v: Expr) -> Expr:
        exact = not dtypes.is_float(v.dtype) and bias == int(bias)
        by = te.cast(int(bias), v.dtype) if exact else bias
        zero = te.cast(0, v.dtype)
        inner = te.if_then_else(v < -lambd, te.cast(v + by, v.dtype), zero)
        return te.if_then_else(v > lambd, te.cast(v - by, v.dtype), inner)

    return elementwise(element, x, name="shrink")


def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return _rounded_once(lambda v: te.if_then_else(v > 0, v, (te.exp(v) - 1) * alpha), x, name="elu")


def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Tensor:
    return _rounded_once(lambda v: te.if_then_else(v > 0, v, (te.exp(v) - 1) * alpha) * gamma, x, name="selu")


def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return _rounded_once(lambda v: te.maximum(v, 0) + te.minimum((te.exp(v / alpha) - 1) * alpha, 0), x, name="celu")


def sigmoid(x: Tensor) -> Tensor:
    return elementwise(te.sigmoid, x, name="sigmoid")


def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return _rounded_once(lambda v: te.maximum(te.minimum(v * alpha + beta, 1), 0), x, name="hard_sigmoid")


def hard_swish(x: Tensor) -> Tensor:
    return _rounded_once(lambda v: v * te.maximum(te.minimum(v / 6 + 0.5, 1), 0), x, name="hard_swish")


def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """``x * sigmoid(alpha * x)``; SiLU when ``alpha`` is 1."""
    return _rounded_once(lambda v: v * te.sigmoid(v * alpha), x, name="swish")


def softplus_of(v: Expr) -> Expr:
    """``log(1 + e^v)`` without overflow for large ``v``, and as exact as ``e^v`` where that is small."""
    small = te.exp(-te.abs(v))
    # log(1 + u) = 2 artanh(u / (2 + u)), of at most 1/3: the terms that are left out are less than a last digit.
    part = small / (small + 2)
    square = part * part
    terms = 17 if v.dtype == "float64" else 8
    series: Expr = te.cast(1 / (2 * terms - 1), v.dtype)
    for n in reversed(range(terms - 1)):
        series = series * square + 1 / (2 * n + 1)
    return te.maximum(v, 0) + part * series * 2


def softplus(x: Tensor) -> Tensor:
    return _rounded_once(softplus_of, x, name="softplus")


def softsign(x: Tensor) -> Tensor:
    return _rounded_once(lambda v: v / (te.abs(v) + 1), x, name="softsign")


def mish(x: Tensor) -> Tensor:
    return _rounded_once(lambda v: v * te.tanh(softplus_of(v)), x, name="mish")


def gelu(x: Tensor, *, approximate: bool = False) -> Tensor:
    """Gaussian error linear unit: by erf, or by its tanh approximation."""

    def exact(v: Expr) -> Expr:
        return v * 0.5 * (te.erf(v * math.sqrt(0.5)) + 1)

    def by_tanh(v: Expr) -> Expr:
        return v * 0.5 * (te.tanh((v + v * v * v * 0.044715) * math.sqrt(2 / math.pi)) + 1)

    return _rounded_once(by_tanh if approximate else exact, x, name="gelu")
