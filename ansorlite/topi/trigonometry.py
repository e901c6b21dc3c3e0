"""Trigonometric and hyperbolic functions and their inverses: element-wise, one operand.

They are polynomials written as tensor expressions, so that they run in vectors on every target and fuse like any other
element-wise operator. All of them compute in float64 and round once at the end: float32 results are within one ulp of the true
ones, float64 results within some tens. The coefficients of the polynomials are those of fdlibm (Sun Microsystems, 1993).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from ansorlite import te
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import elementwise

#: sin(x) = x + x^3 P(x^2) and cos(x) = 1 - x^2/2 + x^4 P(x^2) for |x| <= pi/4.
_SIN: Final = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COS: Final = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
#: atan(x) = x - x^3 P(x^2) for |x| < 7/16.
_ATAN: Final = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
#: pi/2 in three parts: products of the first two with a quadrant's number below 2^20 are exact.
_HALF_PI: Final = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624871116645580e-21)


def _polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """``coefficients[0] + coefficients[1] x + ...``, by Horner's rule."""
    result: Expr = te.cast(coefficients[-1], "float64")
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _in_double(function: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    return lambda v: te.cast(function(te.cast(v, "float64")), v.dtype)


def _quadrant(x: Expr) -> tuple[Expr, Expr, Expr]:
    """(number of the quadrant in 0..3, sine and cosine of what is left of ``x``)."""
    count = te.round(x * (2 / math.pi))
    rest = x
    for part in _HALF_PI:
        rest = rest - count * part
    # Of an x so large that its last digit is more than a quadrant nothing is left; the result is one of some angle all the same.
    rest = te.maximum(te.minimum(rest, math.pi / 4), -math.pi / 4)
    square = rest * rest
    sine = rest + rest * square * _polynomial(square, _SIN)
    cosine = 1.0 - square * 0.5 + square * square * _polynomial(square, _COS)
    return count - te.floor(count * 0.25) * 4.0, sine, cosine


def _sin(x: Expr) -> Expr:
    quadrant, sine, cosine = _quadrant(x)
    value = te.if_then_else(te.any(quadrant == 1.0, quadrant == 3.0), cosine, sine)
    return te.if_then_else(quadrant >= 2.0, -value, value)


def _cos(x: Expr) -> Expr:
    quadrant, sine, cosine = _quadrant(x)
    value = te.if_then_else(te.any(quadrant == 1.0, quadrant == 3.0), sine, cosine)
    return te.if_then_else(te.any(quadrant == 1.0, quadrant == 2.0), -value, value)


def _tan(x: Expr) -> Expr:
    quadrant, sine, cosine = _quadrant(x)
    return te.if_then_else(te.any(quadrant == 1.0, quadrant == 3.0), -cosine / sine, sine / cosine)


def _atan(x: Expr) -> Expr:
    size = te.abs(x)
    # atan(x) = pi/2 - atan(1/x) and = pi/4 + atan((x - 1) / (x + 1)) bring the argument below tan(pi/8).
    inner = te.if_then_else(size > 1.0, 1.0 / size, size)
    steep = inner > math.sqrt(2) - 1
    small = te.if_then_else(steep, (inner - 1.0) / (inner + 1.0), inner)
    square = small * small
    angle = small - small * square * _polynomial(square, _ATAN)
    angle = te.if_then_else(steep, angle + math.pi / 4, angle)
    angle = te.if_then_else(size > 1.0, math.pi / 2 - angle, angle)
    return te.if_then_else(x < 0.0, -angle, angle)


def _asin(x: Expr) -> Expr:
    return _atan(x / te.sqrt((1.0 - x) * (x + 1.0)))


def _acos(x: Expr) -> Expr:
    return _atan(te.sqrt((1.0 - x) / (x + 1.0))) * 2.0


def _odd(x: Expr, coefficients: Sequence[float]) -> Expr:
    """``x`` times a polynomial in its square."""
    return x * _polynomial(x * x, coefficients)


def _sinh(x: Expr) -> Expr:
    series = _odd(x, [1 / math.factorial(2 * n + 1) for n in range(9)])
    return te.if_then_else(te.abs(x) < 1.0, series, (te.exp(x) - te.exp(-x)) * 0.5)


def _cosh(x: Expr) -> Expr:
    return (te.exp(x) + te.exp(-x)) * 0.5


def _asinh(x: Expr) -> Expr:
    size = te.abs(x)
    series = _odd(size, [1.0, -1 / 6, 3 / 40, -15 / 336, 105 / 3456])
    whole = te.if_then_else(size > 1e8, te.log(size) + math.log(2), te.log(size + te.sqrt(size * size + 1.0)))
    value = te.if_then_else(size < 0.02, series, whole)
    return te.if_then_else(x < 0.0, -value, value)


def _acosh(x: Expr) -> Expr:
    # Near 1 the usual log(x + sqrt(x^2 - 1)) loses half of the digits.
    return _asinh(te.sqrt((x - 1.0) * 0.5)) * 2.0


def _atanh(x: Expr) -> Expr:
    series = _odd(x, [1.0, 1 / 3, 1 / 5, 1 / 7, 1 / 9])
    return te.if_then_else(te.abs(x) < 0.02, series, te.log((x + 1.0) / (1.0 - x)) * 0.5)


def sin(x: Tensor) -> Tensor:
    return elementwise(_in_double(_sin), x, name="sin")


def cos(x: Tensor) -> Tensor:
    return elementwise(_in_double(_cos), x, name="cos")


def tan(x: Tensor) -> Tensor:
    return elementwise(_in_double(_tan), x, name="tan")


def asin(x: Tensor) -> Tensor:
    return elementwise(_in_double(_asin), x, name="asin")


def acos(x: Tensor) -> Tensor:
    return elementwise(_in_double(_acos), x, name="acos")


def atan(x: Tensor) -> Tensor:
    return elementwise(_in_double(_atan), x, name="atan")


def sinh(x: Tensor) -> Tensor:
    return elementwise(_in_double(_sinh), x, name="sinh")


def cosh(x: Tensor) -> Tensor:
    return elementwise(_in_double(_cosh), x, name="cosh")


def asinh(x: Tensor) -> Tensor:
    return elementwise(_in_double(_asinh), x, name="asinh")


def acosh(x: Tensor) -> Tensor:
    return elementwise(_in_double(_acosh), x, name="acosh")


def atanh(x: Tensor) -> Tensor:
    return elementwise(_in_double(_atanh), x, name="atanh")
