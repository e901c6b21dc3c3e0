"""float16 and back, on every target: by its instructions, or by arithmetic on the bits where it has none.

LLVM would call functions of the compiler's own library, which neither this process nor an exported one has, lane by lane.
After F. Giesen's "float->half variants": https://gist.github.com/rygorous/2156668
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ansorlite.codegen import types
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.builder import Builder
from ansorlite.target import Target

#: float32 has so many more bits of the significand, and its exponents so much more bias.
_SHIFT: Final = 13
_BIAS: Final = (127 - 15) << 23
#: The bits of 2^-14, float16's least normal number; of 2^16, above its greatest; of 2^15, whose exponent is its greatest.
_LEAST_NORMAL: Final = 113 << 23
_TOO_LARGE: Final = 143 << 23
#: The bits of 0.5: float32's last bit there is worth as much as float16's least number, 2^-24.
_HALF: Final = 126 << 23
_INFINITY: Final = 255 << 23
_QUIET: Final = 1 << 22
_SIGN: Final = 1 << 31


def converts(target: Target) -> bool:
    """Whether conversions between float16 and float32 are instructions."""
    return architecture_of(target).half or "+f16c" in target.features.split(",")


def widen(b: Builder, lanes: int, x: str) -> str:
    """float16, as the ``i16`` that memory has, to ``float``: exact; NaN stays NaN, made quiet."""
    short, half, single = (types.vector(t, lanes) for t in ("i16", "half", "float"))
    if converts(b.module.target):
        return b.op(f"fpext {half} {b.op(f'bitcast {short} {x} to {half}')} to {single}")
    w = _Words(b, lanes)
    bits = b.op(f"zext {short} {x} to {w.words}")
    magnitude = w.op("shl", w.op("and", bits, 0x7FFF), _SHIFT)
    normal = w.op("add", magnitude, _BIAS)
    # An exponent of ones stays one.
    special = w.op("or", w.op("add", magnitude, 2 * _BIAS), w.select(w.above(magnitude, 0x7C00 << _SHIFT), _QUIET, 0))
    # A denormal number is what 2^-14 + it is more than 2^-14: no bit is lost, and both are normal in float32.
    lifted = w.as_float(w.op("add", magnitude, _LEAST_NORMAL))
    denormal = w.as_bits(b.op(f"fsub {w.floats} {lifted}, {w.as_float(w.number(_LEAST_NORMAL))}"))
    finite = w.select(w.above(magnitude, (0x0400 << _SHIFT) - 1), normal, denormal)
    result = w.select(w.above(magnitude, (0x7C00 << _SHIFT) - 1), special, finite)
    sign = w.op("shl", w.op("and", bits, 0x8000), 16)
    return w.as_float(w.op("or", result, sign))


def narrow(b: Builder, lanes: int, x: str) -> str:
    """``float`` to float16, as the ``i16`` that memory has: to the nearest, half to even; NaN stays NaN, made quiet."""
    short, half, single = (types.vector(t, lanes) for t in ("i16", "half", "float"))
    if converts(b.module.target):
        return b.op(f"bitcast {half} {b.op(f'fptrunc {single} {x} to {half}')} to {short}")
    w = _Words(b, lanes)
    bits = w.as_bits(x)
    magnitude = w.op("and", bits, _SIGN - 1)
    odd = w.op("and", w.op("lshr", magnitude, _SHIFT), 1)
    # What is rounded up over the greatest number is infinity, as it should be.
    rounded = w.op("add", w.op("add", magnitude, (1 << _SHIFT - 1) - 1 - _BIAS), odd)
    normal = w.op("lshr", rounded, _SHIFT)
    # To add 0.5 rounds to multiples of float16's least number, and leaves how many there are in the low bits.
    shifted = w.as_bits(b.op(f"fadd {w.floats} {w.as_float(magnitude)}, {w.as_float(w.number(_HALF))}"))
    denormal = w.op("sub", shifted, _HALF)
    payload = w.op("or", w.op("and", w.op("lshr", magnitude, _SHIFT), 0x3FF), 0x7E00)
    special = w.select(w.above(magnitude, _INFINITY), payload, 0x7C00)
    finite = w.select(w.above(magnitude, _LEAST_NORMAL - 1), normal, denormal)
    result = w.select(w.above(magnitude, _TOO_LARGE - 1), special, finite)
    sign = w.op("lshr", w.op("and", bits, _SIGN), 16)
    return b.op(f"trunc {w.words} {w.op('or', result, sign)} to {short}")


@dataclass(frozen=True)
class _Words:
    """Arithmetic on the bits of float32, in every lane."""

    b: Builder
    lanes: int

    @property
    def words(self) -> str:
        return types.vector("i32", self.lanes)

    @property
    def floats(self) -> str:
        return types.vector("float", self.lanes)

    def number(self, value: int) -> str:
        return types.splat(str(value), "i32", self.lanes)

    def op(self, instruction: str, x: str, y: int | str) -> str:
        return self.b.op(f"{instruction} {self.words} {x}, {y if isinstance(y, str) else self.number(y)}")

    def above(self, x: str, limit: int) -> str:
        """``x > limit``, of numbers without sign."""
        return self.b.op(f"icmp sgt {self.words} {x}, {self.number(limit)}")

    def select(self, condition: str, then: int | str, otherwise: int | str) -> str:
        arms = (arm if isinstance(arm, str) else self.number(arm) for arm in (then, otherwise))
        return self.b.select(self.words, self.lanes, condition, *arms)

    def as_float(self, x: str) -> str:
        return self.b.op(f"bitcast {self.words} {x} to {self.floats}")

    def as_bits(self, x: str) -> str:
        return self.b.op(f"bitcast {self.floats} {x} to {self.words}")
