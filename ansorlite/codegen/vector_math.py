"""exp, log, tanh, sigmoid and erf as polynomials in LLVM IR, over any number of lanes.

Largest errors over all float32 values are printed by ``benchmarks/math_accuracy.py`` and kept in docs/decisions/vector-math.md.
Coefficients: erf after N. Juffa, the others in ``lanes.py``.
All are right at infinities, NaN, zeros and denormal numbers.
"""

from __future__ import annotations

import math
from typing import Final

from ansorlite.codegen import vector_erf
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.integer import per_lane
from ansorlite.codegen.lanes import FloatLanes

#: erf(x) = x + x P(x^2) below the split (highest degree first), and 1 - exp(Q(|x|)) above it.
_ERF_SPLIT: Final = 0.927734375
_ERF_SMALL: Final = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
_ERF_LARGE: Final = (-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1)


def exp(b: Builder, dtype: str, lanes: int, x: str) -> str:
    w = FloatLanes(b, dtype, lanes)
    clamped = w.at_most(w.at_least(x, w.format.exp_low), w.format.exp_high)
    n, minus_one = w.reduce_exponent(clamped)
    return w.scale(w.op("fadd", minus_one, w.number(1.0)), n, far=True)


def tanh(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """e / (e + 2) with e = exp(2 |x|) - 1."""
    w = FloatLanes(b, dtype, lanes)
    magnitude = w.unary("fabs", x)
    doubled = w.at_most(w.op("fadd", magnitude, magnitude), w.format.tanh_high)
    n, minus_one = w.reduce_exponent(doubled)
    scale = w.scale(w.number(1.0), n)
    e = w.fma(scale, minus_one, w.op("fsub", scale, w.number(1.0)))
    return w.copysign(w.op("fdiv", e, w.op("fadd", e, w.number(2.0))), x)


def sigmoid(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """1 / (1 + z) or z / (1 + z) with z = exp(-|x|), so that no side overflows."""
    w = FloatLanes(b, dtype, lanes)
    z = exp(b, dtype, lanes, w.op("fsub", w.number(-0.0), w.unary("fabs", x)))
    numerator = w.select(w.compare("oge", x, 0.0), w.number(1.0), z)
    return w.op("fdiv", numerator, w.op("fadd", z, w.number(1.0)))


def log(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """x = 2^k (1 + f); log(1 + f) from s = f / (2 + f)."""
    w = FloatLanes(b, dtype, lanes)
    f = w.format
    exponent, mantissa = w.split(x)
    fraction = w.op("fsub", mantissa, w.number(1.0))
    s = w.op("fdiv", fraction, w.op("fadd", fraction, w.number(2.0)))
    z = w.op("fmul", s, s)
    r = w.op("fmul", z, w.polynomial(tuple(reversed(f.log)), z))
    half_square = w.op("fmul", w.op("fmul", fraction, w.number(0.5)), fraction)
    low = w.fma(s, w.op("fadd", half_square, r), w.op("fmul", exponent, w.number(f.log_ln2_low)))
    result = w.op("fadd", w.op("fsub", low, half_square), fraction)
    result = w.fma(exponent, w.number(f.log_ln2_high), result)
    result = w.select(w.compare("oeq", x, 0.0), w.number(-math.inf), result)
    result = w.select(w.compare("ult", x, 0.0), w.number(math.nan), result)
    # Infinity and NaN are their own logarithms.
    return w.select(w.compare("ult", x, math.inf), result, x)


def erf(b: Builder, dtype: str, lanes: int, x: str) -> str:
    w = FloatLanes(b, dtype, lanes)
    if w.dtype == "float64" and not architecture_of(b.module.target).library:
        return vector_erf.double(w, x, lambda value: exp(b, dtype, lanes, value))
    if w.dtype == "float64":
        b.module.declare("double @erf(double)")
        return per_lane(b, "double", lanes, "@erf", x)
    magnitude = w.unary("fabs", x)
    square = w.op("fmul", x, x)
    small = w.fma(w.polynomial(_ERF_SMALL, square), x, x)
    # The float polynomial is evaluated to 4 from infinity: beyond, erf is 1, and the polynomial's signs turn.
    t = w.at_most(magnitude, 4.0)
    exponent = w.polynomial(_ERF_LARGE, t)
    exponent = w.fma(exponent, t, w.op("fsub", w.number(-0.0), t))
    # From -17 to 0: the result is a normal number, whose exponent is added to.
    n, minus_one = w.reduce_exponent(exponent)
    power = w.scale(w.op("fadd", minus_one, w.number(1.0)), n)
    large = w.op("fsub", w.number(1.0), power)
    return w.select(w.compare("ogt", magnitude, _ERF_SPLIT), w.copysign(large, x), small)
