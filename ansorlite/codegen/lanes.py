"""Arithmetic on lanes of one float format, written into a builder: what the vector functions are made of.

Coefficients: exp from SLEEF (Boost licence), log from FreeBSD's msun.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ansorlite.codegen import types
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.floating import extremum
from ansorlite.codegen.scalef import scalef, scales


@dataclass(frozen=True)
class Format:
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

    @property
    def magic(self) -> float:
        """Adding it rounds to an integer, and leaves that in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def magic_bits(self) -> int:
        return (self.bias + self.mantissa) << self.mantissa | 1 << (self.mantissa - 1)


_FLOAT32: Final = Format(
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

_FLOAT64: Final = Format(
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


class Whole(NamedTuple):
    """A whole number in every lane.

    Attributes:
        number: as a float.
        word: a word with it in its low bits, in half of them, too; what is above is shifted out of an exponent.
    """

    number: str
    word: str


class FloatLanes:
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

    def fused(self, x: str, y: str, z: str) -> str:
        """``x * y + z`` rounded once, on every target."""
        return self.b.intrinsic("fma", self.format.element, self.lanes, x, y, z)

    def unary(self, name: str, x: str) -> str:
        return self.b.intrinsic(name, self.format.element, self.lanes, x)

    def copysign(self, magnitude: str, sign: str) -> str:
        return self.b.intrinsic("copysign", self.format.element, self.lanes, magnitude, sign)

    def select(self, condition: str, then: str, otherwise: str) -> str:
        return self.b.select(self.kind, self.lanes, condition, then, otherwise)

    def compare(self, predicate: str, x: str, y: float | str) -> str:
        return self.b.op(f"fcmp {predicate} {self.kind} {x}, {y if isinstance(y, str) else self.number(y)}")

    def join(self, instruction: str, x: str, y: str) -> str:
        """Two conditions joined by ``and``, ``or`` or ``xor``."""
        return self.b.op(f"{instruction} {types.vector('i1', self.lanes)} {x}, {y}")

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

    def scale(self, x: str, n: Whole, *, far: bool = False) -> str:
        """``x * 2**n`` of normal ``x``.

        Args:
            far: whether ``n`` may be twice as large as any exponent: a denormal result is rounded once. Else results are normal.
        """
        if scales(self.b.module.target, self.lanes):
            return scalef(self.b, self.format.element, self.lanes, x, n.number)
        if not far:
            return self.from_bits(self.word("add", self.bits(x), self.word("shl", n.word, self.format.mantissa)))
        half = self.word("lshr", n.word, 1)
        scaled = self.op("fmul", x, self._power_of_two(half))
        return self.op("fmul", scaled, self._power_of_two(self.word("sub", n.word, half)))

    def _power_of_two(self, n: str) -> str:
        """2 to an integer, which the low bits of a word are, within the exponents of normal numbers."""
        f = self.format
        return self.from_bits(self.word("add", self.word("shl", n, f.mantissa), f.bias << f.mantissa))

    def split(self, x: str, *, denormal: bool = True) -> tuple[str, str]:
        """(k, m) with x = 2^k m and m in [sqrt(1/2), sqrt(2)): of finite numbers above 0, unless ``denormal`` normal ones."""
        f = self.format
        lift = f.mantissa + 2
        small = self.compare("olt", x, 2.0 ** (1 - f.bias)) if denormal else ""
        if small:
            x = self.select(small, self.op("fmul", x, self.number(2.0**lift)), x)
        biased = self.word("add", self.bits(x), (f.bias << f.mantissa) - f.log_split)
        k = self.word("sub", self.word("lshr", biased, f.mantissa), f.bias)
        if small:
            k = self.word("sub", k, self.b.select(self.words, self.lanes, small, self.integer(lift), self.integer(0)))
        return self.from_integer(k), self.from_bits(
            self.word("add", self.word("and", biased, (1 << f.mantissa) - 1), f.log_split)
        )

    def from_integer(self, n: str) -> str:
        """An integer that is small against the mantissa, as a number."""
        if self.format.element == "float":
            return self.b.op(f"sitofp {self.words} {n} to {self.kind}")
        # x86 converts 64-bit integers in vectors from AVX-512DQ on.
        return self.op("fsub", self.from_bits(self.word("add", n, self.format.magic_bits)), self.number(self.format.magic))

    def round(self, x: str) -> Whole:
        """The nearest integer to a number that is small against the mantissa."""
        return self._rounded(self.op("fadd", x, self.number(self.format.magic)))

    def _rounded(self, shifted: str) -> Whole:
        """Of what ``magic`` was added to: the integer."""
        return Whole(self.op("fsub", shifted, self.number(self.format.magic)), self.bits(shifted))

    def reduce_exponent(self, x: str) -> tuple[Whole, str]:
        """x = n ln 2 + r with |r| <= ln 2 / 2: (n, exp(r) - 1)."""
        f = self.format
        n = self._rounded(self.fma(x, self.number(math.log2(math.e)), self.number(f.magic)))
        rest = self.fma(n.number, self.number(-f.ln2_high), x)
        rest = self.fma(n.number, self.number(-f.ln2_low), rest)
        square = self.op("fmul", rest, rest)
        return n, self.fma(self.polynomial(f.exp, rest), square, rest)
