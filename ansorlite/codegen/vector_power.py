"""``x ** y`` in LLVM IR, over any number of lanes: 2^(y log2 |x|), and the special cases of C's ``pow``.

The relative error of a power is the absolute one of the logarithm's product, up to 2^10 times that of the logarithm. So
float32 is computed in float64; float64 carries the logarithm as a sum of two (Dekker 1971, Knuth's two-sum). Exponents that
are small multiples of 1/4 are products and square roots. The polynomials are interpolated at Chebyshev nodes.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from ansorlite.codegen import types
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.lanes import FloatLanes
from ansorlite.te.powers import by_products, has_products

#: log2((1 + s) / (1 - s)) = s P(s^2) for mantissas from [sqrt(1/2), sqrt(2)): to 2^-36, highest degree first.
_LOG2: Final = (0.34071413665191197, 0.411673658400816, 0.5770835677034892, 0.9617966734432283, 2.885390081789993)
#: 2^r for |r| <= 1/2, to 2^-29.
_EXP2: Final = (
    0.0001546144469856913,
    0.0013400428177615838,
    0.009618056678524637,
    0.05550327226670302,
    0.24022650922288757,
    0.6931472067028326,
    1.0,
)
#: The same logarithm as s (a + s^2 (b + s^2 Q(s^2))) with a and b sums of two, Q to 2^-57.
_LOG2_FIRST: Final = (2.8853900817779268, 4.0710547481862066e-17)
_LOG2_SECOND: Final = (0.9617966939259756, 5.0577616648125907e-17)
_LOG2_REST: Final = (
    0.16912971664122153,
    0.16888529114458137,
    0.19238056603036385,
    0.2219527885851067,
    0.2623081914681522,
    0.3205988979671547,
    0.4121985831111439,
    0.5770780163555853,
)
_LN2: Final = (0.6931471805599453, 2.3190468138462996e-17)

#: A number as the sum of two, the second far smaller.
_Pair: TypeAlias = tuple[str, str]


def power(b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    w = FloatLanes(b, dtype, lanes)
    exponent = types.number_of(y)
    if exponent is not None and has_products(exponent):
        return _products(w, x, exponent)
    magnitude = w.unary("fabs", x)
    value = _double(w, magnitude, y) if w.dtype == "float64" else _single(w, magnitude, y)
    return _with_special_cases(w, x, y, magnitude, value)


def _products(w: FloatLanes, x: str, exponent: float) -> str:
    if not exponent.is_integer():
        # Roots of -0 and -infinity are not their powers, which are those of 0 and infinity.
        x = w.select(w.compare("oeq", x, -math.inf), w.number(math.inf), w.op("fadd", x, w.number(0.0)))
    return by_products(
        exponent,
        x,
        one=w.number(1.0),
        multiply=lambda p, q: w.op("fmul", p, q),
        root=lambda p: w.unary("sqrt", p),
        invert=lambda p: w.op("fdiv", w.number(1.0), p),
    )


def _clamped(w: FloatLanes, x: str, bound: float) -> str:
    return w.at_most(w.at_least(x, -bound), bound)


def _single(narrow: FloatLanes, magnitude: str, y: str) -> str:
    """``magnitude ** y`` of finite numbers above 0, in float64."""
    w = FloatLanes(narrow.b, "float64", narrow.lanes)
    wide, exponent = (narrow.b.op(f"fpext {narrow.kind} {value} to {w.kind}") for value in (magnitude, y))
    # Every float32 is a normal float64.
    k, mantissa = w.split(wide, denormal=False)
    s = w.op("fdiv", w.op("fsub", mantissa, w.number(1.0)), w.op("fadd", mantissa, w.number(1.0)))
    log2 = w.fma(s, w.polynomial(_LOG2, w.op("fmul", s, s)), k)
    # No float32 but 1 has a logarithm below 2^-25: beyond this exponent, the result is 0, 1 or infinite.
    product = w.op("fmul", _clamped(w, exponent, 2.0**40), log2)
    product = _clamped(w, product, 200.0)
    n = w.round(product)
    rest = w.op("fsub", product, n.number)
    result = w.scale(w.polynomial(_EXP2, rest), n)
    return narrow.b.op(f"fptrunc {w.kind} {result} to {narrow.kind}")


def _double(w: FloatLanes, magnitude: str, y: str) -> str:
    """``magnitude ** y`` of finite numbers above 0."""
    log2 = _log2_pair(w, magnitude)
    exponent = _clamped(w, y, 2.0**66)
    high, low = _times_number(w, log2, exponent)
    high, low = _clamped(w, high, 1100.0), _clamped(w, low, 1.0)
    n = w.round(high)
    rest = w.op("fsub", high, n.number)
    # 2^(rest + low) = e^(r + t), r = rest ln 2 as rounded, t far smaller.
    r = w.op("fmul", rest, w.number(_LN2[0]))
    t = w.fma(rest, w.number(_LN2[1]), w.fused(rest, w.number(_LN2[0]), w.op("fsub", w.number(-0.0), r)))
    t = w.fma(low, w.number(_LN2[0]), t)
    line, error = _sum_ordered(w, w.number(1.0), r)
    curve = w.op("fmul", w.polynomial(w.format.exp, r), w.op("fmul", r, r))
    curve = w.fma(t, w.op("fadd", line, curve), curve)
    mantissa = w.op("fadd", line, w.op("fadd", error, curve))
    return w.scale(mantissa, n, far=True)


def _log2_pair(w: FloatLanes, x: str) -> _Pair:
    """log2 of finite numbers above 0, to about 2^-65 of it."""
    k, mantissa = w.split(x)
    one = w.number(1.0)
    numerator, denominator = w.op("fsub", mantissa, one), w.op("fadd", mantissa, one)
    missing = w.op("fsub", mantissa, w.op("fsub", denominator, one))
    inverse = w.op("fdiv", one, denominator)
    s = w.op("fmul", numerator, inverse)
    minus_s = w.op("fsub", w.number(-0.0), s)
    left = w.fma(minus_s, missing, w.fused(minus_s, denominator, numerator))
    quotient = (s, w.op("fmul", left, inverse))
    square = _times(w, quotient, quotient)
    rest = w.op("fmul", square[0], w.polynomial(_LOG2_REST, square[0]))
    second, error = _sum_ordered(w, w.number(_LOG2_SECOND[0]), rest)
    bend = _times(w, square, (second, w.op("fadd", error, w.number(_LOG2_SECOND[1]))))
    first, error = _sum_ordered(w, w.number(_LOG2_FIRST[0]), bend[0])
    low = w.op("fadd", error, w.op("fadd", bend[1], w.number(_LOG2_FIRST[1])))
    high, low = _times(w, quotient, (first, low))
    high, error = _sum_ordered(w, k, high)
    return _sum_ordered(w, high, w.op("fadd", error, low))


def _sum_ordered(w: FloatLanes, x: str, y: str) -> _Pair:
    """x + y, exactly, where x is 0 or no smaller than y."""
    total = w.op("fadd", x, y)
    return total, w.op("fsub", y, w.op("fsub", total, x))


def _times_number(w: FloatLanes, x: _Pair, y: str) -> _Pair:
    high = w.op("fmul", x[0], y)
    return high, w.fma(x[1], y, w.fused(x[0], y, w.op("fsub", w.number(-0.0), high)))


def _times(w: FloatLanes, x: _Pair, y: _Pair) -> _Pair:
    high, low = _times_number(w, x, y[0])
    return high, w.fma(x[0], y[1], low)


def _with_special_cases(w: FloatLanes, x: str, y: str, magnitude: str, value: str) -> str:
    """``x ** y``, given the power ``value`` of its magnitude where that and ``y`` are ordinary numbers."""
    zero, infinite = w.compare("oeq", magnitude, 0.0), w.compare("oeq", magnitude, math.inf)
    grows = w.join("xor", infinite, w.compare("olt", y, 0.0))
    edge = w.select(grows, w.number(math.inf), w.number(0.0))
    value = w.select(w.join("or", zero, infinite), edge, value)
    # Negative numbers have powers with whole exponents; those with odd ones, and of -0 and -infinity, are negative.
    whole = w.compare("oeq", w.unary("trunc", y), y)
    half = w.op("fmul", y, w.number(0.5))
    odd = w.join("and", whole, w.compare("une", w.unary("trunc", half), half))
    signed = w.select(odd, x, w.number(1.0))
    value = w.copysign(value, signed)
    negative = w.join("and", w.compare("olt", x, 0.0), w.compare("one", x, -math.inf))
    fraction = w.select(whole, value, w.number(math.nan))
    value = w.select(negative, fraction, value)
    value = w.select(w.compare("uno", x, y), w.number(math.nan), value)
    return w.select(w.join("or", w.compare("oeq", x, 1.0), w.compare("oeq", y, 0.0)), w.number(1.0), value)
