"""exp, log, tanh, sigmoid and erf as polynomials in LLVM IR, over any number of lanes.

Largest errors over all float32 values are printed by ``benchmarks/math_accuracy.py`` and kept in ``docs/decisions.md``.
Coefficients: exp from SLEEF (Boost licence), log from FreeBSD's msun, erf after N. Juffa.
All are right at infinities, NaN, zeros and denormal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ansorlite.codegen import types
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.floating import extremum
from ansorlite.codegen.integer import per_lane


@dataclass(frozen=True)
class _Format:
    """What the functions need to know of a float format.

    Attributes:
        mantissa: stored bits of the significand.
        bias: of the exponent.
        exp_low, exp_high: exp is 0 below, infinite above.
        ln2_high, ln2_low: ln 2 as a sum whose first part has trailing zeros.
        exp: coefficients of exp(r) = 1 + r + r^2 (exp[-1] + r (exp[-2] + ...)), highest degree first.
        log: coefficients of log's R(s^2), lowest degree first.
        log_split: the bits of sqrt(1/2): mantissas are taken from [sqrt(1/2), sqrt(2)).
        tanh_high: tanh(x) is 1 where 2 x is larger.
    """

    element: str
    integer: str
    mantissa: int
    bias: int
    exp_low: float
    exp_high: float
    ln2_high: float
    ln2_low: float
    log_ln2_high: float
    log_ln2_low: float
    exp: tuple[float, ...]
    log: tuple[float, ...]
    log_split: int
    tanh_high: float


_FLOAT32: Final = _Format(
    "float",
    "i32",
    mantissa=23,
    bias=127,
    exp_low=-105.0,
    exp_high=89.0,
    ln2_high=0.693145751953125,
    ln2_low=1.428606765330187e-06,
    log_ln2_high=6.9313812256e-01,
    log_ln2_low=9.0580006145e-06,
    exp=(0.00019852762, 0.0013930436, 0.008333361, 0.041666485, 0.16666667, 0.5),
    log=(0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841),
    log_split=0x3F3504F3,
    tanh_high=20.0,
)

_FLOAT64: Final = _Format(
    "double",
    "i64",
    mantissa=52,
    bias=1023,
    exp_low=-746.0,
    exp_high=710.0,
    ln2_high=0.693147180559662956511601805686950683593750,
    ln2_low=0.28235290563031577122588448175013436025525412068e-12,
    log_ln2_high=6.93147180369123816490e-01,
    log_ln2_low=1.90821492927058770002e-10,
    exp=(
        2.08860621107283687536341e-09,
        2.51112930892876518610661e-08,
        2.75573911234900471893338e-07,
        2.75572362911928827629423e-06,
        2.4801587159235472998791e-05,
        0.000198412698960509205564975,
        0.00138888888889774492207962,
        0.00833333333331652721664984,
        0.0416666666666665047591422,
        0.166666666666666851703837,
        0.5,
    ),
    log=(
        6.666666666666735130e-01,
        3.999999999940941908e-01,
        2.857142874366239149e-01,
        2.222219843214978396e-01,
        1.818357216161805012e-01,
        1.531383769920937332e-01,
        1.479819860511658591e-01,
    ),
    log_split=0x3FE6A09E << 32,
    tanh_high=40.0,
)

#: erf(x) = x + x P(x^2) below the split (highest degree first), and 1 - exp(Q(|x|)) above it.
_ERF_SPLIT: Final = 0.927734375
_ERF_SMALL: Final = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
_ERF_LARGE: Final = (-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1)


class _Writer:
    """Arithmetic on vectors of one float format, written into a builder."""

    def __init__(self, b: Builder, dtype: str, lanes: int) -> None:
        self.b = b
        self.lanes = lanes
        self.format = _FLOAT64 if dtype == "float64" else _FLOAT32
        self.dtype = "float64" if dtype == "float64" else "float32"
        self.kind = types.vector(self.format.element, lanes)
        self.words = types.vector(self.format.integer, lanes)

    def number(self, value: float) -> str:
        return types.splat(types.float_literal(value, self.dtype), self.format.element, self.lanes)

    def integer(self, value: int) -> str:
        return types.splat(str(value), self.format.integer, self.lanes)

    def op(self, instruction: str, x: str, y: str) -> str:
        return self.b.op(f"{instruction} {self.kind} {x}, {y}")

    def word(self, instruction: str, x: str, y: int | str) -> str:
        return self.b.op(f"{instruction} {self.words} {x}, {y if isinstance(y, str) else self.integer(y)}")

    def fma(self, x: str, y: str, z: str) -> str:
        return self.b.intrinsic("fmuladd", self.format.element, self.lanes, x, y, z)

    def unary(self, name: str, x: str) -> str:
        return self.b.intrinsic(name, self.format.element, self.lanes, x)

    def copysign(self, magnitude: str, sign: str) -> str:
        return self.b.intrinsic("copysign", self.format.element, self.lanes, magnitude, sign)

    def select(self, condition: str, then: str, otherwise: str) -> str:
        return self.b.select(self.kind, self.lanes, condition, then, otherwise)

    def compare(self, predicate: str, x: str, y: float) -> str:
        return self.b.op(f"fcmp {predicate} {self.kind} {x}, {self.number(y)}")

    def bits(self, x: str) -> str:
        return self.b.op(f"bitcast {self.kind} {x} to {self.words}")

    def from_bits(self, x: str) -> str:
        return self.b.op(f"bitcast {self.words} {x} to {self.kind}")

    def at_most(self, x: str, high: float) -> str:
        return extremum(self.b, self.dtype, self.lanes, x, self.number(high), "olt")

    def at_least(self, x: str, low: float) -> str:
        return extremum(self.b, self.dtype, self.lanes, x, self.number(low), "ogt")

    def polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """Horner's scheme, highest degree first."""
        result = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            result = self.fma(result, x, self.number(coefficient))
        return result

    def power_of_two(self, n: str) -> str:
        """2 to an integer within the exponents of normal numbers."""
        return self.from_bits(self.word("shl", self.word("add", n, self.format.bias), self.format.mantissa))

    def reduce_exponent(self, x: str) -> tuple[str, str]:
        """x = n ln 2 + r with |r| <= ln 2 / 2: (n as integer, exp(r) - 1)."""
        f = self.format
        # Adding 1.5 * 2^mantissa rounds to an integer and leaves it in the low bits.
        magic = 1.5 * 2.0**f.mantissa
        shifted = self.fma(x, self.number(math.log2(math.e)), self.number(magic))
        count = self.op("fsub", shifted, self.number(magic))
        pattern = self.bits(shifted)
        magic_bits = (f.bias + f.mantissa) << f.mantissa | 1 << (f.mantissa - 1)
        n = self.word("sub", pattern, magic_bits)
        rest = self.fma(count, self.number(-f.ln2_high), x)
        rest = self.fma(count, self.number(-f.ln2_low), rest)
        square = self.op("fmul", rest, rest)
        return n, self.fma(self.polynomial(f.exp, rest), square, rest)


def exp(b: Builder, dtype: str, lanes: int, x: str) -> str:
    w = _Writer(b, dtype, lanes)
    clamped = w.at_most(w.at_least(x, w.format.exp_low), w.format.exp_high)
    n, minus_one = w.reduce_exponent(clamped)
    mantissa = w.op("fadd", minus_one, w.number(1.0))
    # Two factors, since n may be larger than any exponent, and so that a denormal result is rounded once.
    half = w.word("ashr", n, 1)
    scaled = w.op("fmul", mantissa, w.power_of_two(half))
    return w.op("fmul", scaled, w.power_of_two(w.word("sub", n, half)))


def tanh(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """e / (e + 2) with e = exp(2 |x|) - 1."""
    w = _Writer(b, dtype, lanes)
    magnitude = w.unary("fabs", x)
    doubled = w.at_most(w.op("fadd", magnitude, magnitude), w.format.tanh_high)
    n, minus_one = w.reduce_exponent(doubled)
    scale = w.power_of_two(n)
    e = w.fma(scale, minus_one, w.op("fsub", scale, w.number(1.0)))
    return w.copysign(w.op("fdiv", e, w.op("fadd", e, w.number(2.0))), x)


def sigmoid(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """1 / (1 + z) or z / (1 + z) with z = exp(-|x|), so that no side overflows."""
    w = _Writer(b, dtype, lanes)
    z = exp(b, dtype, lanes, w.op("fsub", w.number(-0.0), w.unary("fabs", x)))
    numerator = w.select(w.compare("oge", x, 0.0), w.number(1.0), z)
    return w.op("fdiv", numerator, w.op("fadd", z, w.number(1.0)))


def log(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """x = 2^k (1 + f); log(1 + f) from s = f / (2 + f)."""
    w = _Writer(b, dtype, lanes)
    f = w.format
    denormal = w.compare("olt", x, 2.0 ** (1 - f.bias))
    lift = f.mantissa + 2
    normal = w.select(denormal, w.op("fmul", x, w.number(2.0**lift)), x)
    one = f.bias << f.mantissa
    biased = w.word("add", w.bits(normal), one - f.log_split)
    k = w.word("sub", w.word("lshr", biased, f.mantissa), f.bias)
    k = w.word("sub", k, b.select(w.words, lanes, denormal, w.integer(lift), w.integer(0)))
    mantissa = w.from_bits(w.word("add", w.word("and", biased, (1 << f.mantissa) - 1), f.log_split))
    exponent = b.op(f"sitofp {w.words} {k} to {w.kind}")
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
    w = _Writer(b, dtype, lanes)
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
    large = w.op("fsub", w.number(1.0), exp(b, dtype, lanes, exponent))
    return w.select(w.compare("ogt", magnitude, _ERF_SPLIT), w.copysign(large, x), small)
