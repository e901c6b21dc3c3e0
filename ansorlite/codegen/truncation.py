"""Floats to integers, toward zero or to the nearest: what does not fit becomes the nearest that does, NaN becomes 0, everywhere.

LLVM's ``fptosi`` is undefined for what does not fit, and its ``fptosi.sat`` goes lane by lane on x86. So there a value is
brought within the range before it is converted. What is known to be within needs no more than NaN asks for: between a limit
(as quantised operators have it) and at most 16 bits, nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ansorlite.codegen import types
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.pieces import in_pieces, width_of
from ansorlite.te import dtypes
from ansorlite.te.float_range import FloatRange

#: Bits of the significand.
_EXACT_BITS: Final = {"float": 24, "double": 53}

#: By lanes: x86's conversions to 32 bits, toward zero and to the nearest.
_INSTRUCTIONS: Final = {
    1: ("llvm.x86.sse.cvttss2si", "llvm.x86.sse.cvtss2si"),
    4: ("llvm.x86.sse2.cvttps2dq", "llvm.x86.sse2.cvtps2dq"),
    8: ("llvm.x86.avx.cvtt.ps2dq.256", "llvm.x86.avx.cvt.ps2dq.256"),
    16: ("llvm.x86.avx512.mask.cvttps2dq.512", "llvm.x86.avx512.mask.cvtps2dq.512"),
}


def to_integer(b: Builder, source: str, target: str, lanes: int, x: str, known: FloatRange, *, nearest: bool) -> str:
    """``x`` of float dtype ``source`` as an integer of dtype ``target``.

    Args:
        known: of ``x``, rounded where it is to be.
        nearest: whether it is rounded, halves to even, not cut off.
    """
    saturates = architecture_of(b.module.target).saturates
    single = types.VALUE[source] == "float"
    narrow = single and types.bits(target) <= 16
    words = single and target == "int32" and lanes > 1 and not _fits(known, target)
    if nearest and (saturates or not (narrow or words)):
        x = b.intrinsic("rint", types.VALUE[source], lanes, x)
    if saturates:
        if types.bits(target) < 32 and _fits(known, target):
            number = _saturating(b, source, "int32", lanes, x)
            return b.op(f"trunc {types.vector('i32', lanes)} {number} to {types.value_type(target, lanes)}")
        return _saturating(b, source, target, lanes, x)
    if narrow:
        return _through_words(b, target, lanes, x, known, nearest)
    if lanes == 1 and not _fits(known, target):
        return _saturating(b, source, target, lanes, x)
    if words:
        return _words(b, lanes, x, nearest)
    return _limited(b, source, target, lanes, x, known)


def _range(dtype: str) -> tuple[int, int]:
    bits = types.bits(dtype)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtypes.is_signed(dtype) else (0, (1 << bits) - 1)


def _fits(known: FloatRange, target: str) -> bool:
    """Whether what is no NaN is within the target's range once its fraction is cut off."""
    low, high = _range(target)
    return low - 1 < known.low and known.high < high + 1


def _saturating(b: Builder, source: str, target: str, lanes: int, x: str) -> str:
    a, c = types.VALUE[source], types.VALUE[target]
    name = f"llvm.fpto{'s' if dtypes.is_signed(target) else 'u'}i.sat.{types.suffix(c, lanes)}.{types.suffix(a, lanes)}"
    return b.call(types.vector(c, lanes), name, (types.vector(a, lanes), x))


def _literal(element: str, lanes: int, value: float) -> str:
    return types.splat(types.float_literal(value, "float64" if element == "double" else "float32"), element, lanes)


def _choose(b: Builder, element: str, lanes: int, predicate: str, x: str, limit: str) -> str:
    """``x`` where it compares so to ``limit``, else ``limit``: also for NaN."""
    kind = types.vector(element, lanes)
    return b.select(kind, lanes, b.op(f"fcmp {predicate} {kind} {x}, {limit}"), x, limit)


def _limited(b: Builder, source: str, target: str, lanes: int, x: str, known: FloatRange) -> str:
    """By a conversion that is undefined for what does not fit, of a value that does."""
    element, integer = types.VALUE[source], types.VALUE[target]
    kind, result = types.vector(element, lanes), types.vector(integer, lanes)
    low, high = _range(target)
    zero = _literal(element, lanes, 0.0)
    value = x
    if not dtypes.is_signed(target):
        if known.nan or known.low <= -1.0:
            value = _choose(b, element, lanes, "ogt", value, zero)
    else:
        if known.nan:
            value = b.select(kind, lanes, b.op(f"fcmp ord {kind} {x}, {x}"), x, zero)
        if known.low <= low - 1:
            value = _choose(b, element, lanes, "ogt", value, _literal(element, lanes, float(low)))
    convert = f"fpto{'s' if dtypes.is_signed(target) else 'u'}i {kind}"
    if known.high < high + 1:
        return b.op(f"{convert} {value} to {result}")
    if types.bits(target) - dtypes.is_signed(target) <= _EXACT_BITS[element]:
        value = _choose(b, element, lanes, "olt", value, _literal(element, lanes, float(high)))
        return b.op(f"{convert} {value} to {result}")
    # The greatest integer is no float: what is at least the next one is replaced after the conversion.
    above = b.op(f"fcmp oge {kind} {x}, {_literal(element, lanes, float(high + 1))}")
    number = b.op(f"{convert} {b.select(kind, lanes, above, zero, value)} to {result}")
    return b.select(result, lanes, above, types.splat(str(high), integer, lanes), number)


# x86 converts to 32 bits by instructions that give 0x80000000 for what does not fit, and for NaN.


def _through_words(b: Builder, target: str, lanes: int, x: str, known: FloatRange, nearest: bool) -> str:
    """Float to at most 16 bits: the low bits of 0x80000000, which NaN becomes, are 0."""
    low, high = (float(limit) for limit in _range(target))
    kind = types.vector("float", lanes)
    # A comparison that NaN fails, so that NaN stays.
    for predicate, limit, needed in (("ogt", low, known.low <= low - 1), ("olt", high, known.high >= high + 1)):
        if needed:
            bound = _literal("float", lanes, limit)
            x = b.select(kind, lanes, b.op(f"fcmp {predicate} {kind} {bound}, {x}"), bound, x)
    return b.op(f"trunc {types.vector('i32', lanes)} {_raw(b, lanes, x, nearest)} to {types.vector(types.VALUE[target], lanes)}")


def _words(b: Builder, lanes: int, x: str, nearest: bool) -> str:
    """Float to int32."""
    kind, words = types.vector("float", lanes), types.vector("i32", lanes)
    flags = types.vector("i1", lanes)
    above = b.op(f"fcmp oge {kind} {x}, {_literal('float', lanes, 2.0**31)}")
    number = b.op(f"xor {words} {_raw(b, lanes, x, nearest)}, {b.op(f'sext {flags} {above} to {words}')}")
    ordered = b.op(f"fcmp ord {kind} {x}, {x}")
    return b.op(f"and {words} {number}, {b.op(f'sext {flags} {ordered} to {words}')}")


def _raw(b: Builder, lanes: int, x: str, nearest: bool) -> str:
    """The instruction's own result, for vectors of any length."""
    if lanes == 1:
        vector = b.op(f"insertelement <4 x float> poison, float {x}, i64 0")
        return b.call("i32", _INSTRUCTIONS[lanes][nearest], ("<4 x float>", vector))
    width = width_of(b, 4, lanes)
    return in_pieces(b, lanes, width, (("float", x),), "i32", partial(_raw_part, b, width, nearest))


def _raw_part(b: Builder, lanes: int, nearest: bool, x: str) -> str:
    kinds = types.vector("float", lanes), types.vector("i32", lanes)
    # All lanes; 4 is the current direction of rounding: to the nearest. Truncation does not look at it.
    more = [(kinds[1], "poison"), ("i16", "-1"), ("i32", "4")] if lanes == 16 else []
    return b.call(kinds[1], _INSTRUCTIONS[lanes][nearest], (kinds[0], x), *more)
