"""Conversions between dtypes, and between values and what is in memory."""

from __future__ import annotations

from ansorlite.codegen import half, truncation, types
from ansorlite.codegen.builder import Builder
from ansorlite.te import dtypes
from ansorlite.te.float_range import ANYTHING, FloatRange


def round_to_storage(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """A float value rounded to what ``dtype`` (float16 or bfloat16) holds, half to even; still a float value."""
    kind = types.vector("float", lanes)
    if dtype == "float16":
        return half.widen(b, lanes, half.narrow(b, lanes, x))
    words = types.vector("i32", lanes)
    splat = {n: types.splat(str(n), "i32", lanes) for n in (1, 16, 0x7FFF, 0x0040_0000, -0x1_0000)}
    pattern = b.op(f"bitcast {kind} {x} to {words}")
    shifted = b.op(f"lshr {words} {pattern}, {splat[16]}")
    odd = b.op(f"and {words} {shifted}, {splat[1]}")
    bias = b.op(f"add {words} {odd}, {splat[0x7FFF]}")
    rounded = b.op(f"add {words} {pattern}, {bias}")
    # Rounding must not carry a NaN over into infinity: it keeps its bits, made quiet.
    quiet = b.op(f"or {words} {pattern}, {splat[0x0040_0000]}")
    is_nan = b.op(f"fcmp uno {kind} {x}, {x}")
    chosen = b.select(words, lanes, is_nan, quiet, rounded)
    kept = b.op(f"and {words} {chosen}, {splat[-0x1_0000]}")
    return b.op(f"bitcast {words} {kept} to {kind}")


def from_memory(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """What was loaded, as a value."""
    memory, kind = types.memory_type(dtype, lanes), types.value_type(dtype, lanes)
    if dtype == "bool":
        return b.op(f"icmp ne {memory} {x}, {types.splat('0', 'i8', lanes)}")
    if dtype == "float16":
        return half.widen(b, lanes, x)
    if dtype == "bfloat16":
        words = types.vector("i32", lanes)
        wide = b.op(f"zext {memory} {x} to {words}")
        high = b.op(f"shl {words} {wide}, {types.splat('16', 'i32', lanes)}")
        return b.op(f"bitcast {words} {high} to {kind}")
    return x


def to_memory(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """A value (already rounded to its dtype), as it is stored."""
    memory, kind = types.memory_type(dtype, lanes), types.value_type(dtype, lanes)
    if dtype == "bool":
        return b.op(f"zext {kind} {x} to {memory}")
    if dtype == "float16":
        return half.narrow(b, lanes, x)
    if dtype == "bfloat16":
        words = types.vector("i32", lanes)
        pattern = b.op(f"bitcast {kind} {x} to {words}")
        high = b.op(f"lshr {words} {pattern}, {types.splat('16', 'i32', lanes)}")
        return b.op(f"trunc {words} {high} to {memory}")
    return x


def bits(b: Builder, dtype: str, lanes: int, x: str) -> str:
    """The bits of a bfloat16 value."""
    assert dtype == "bfloat16"
    return to_memory(b, dtype, lanes, x)


def _to_odd(b: Builder, lanes: int, x: str) -> str:
    """double to float rounded to odd, so that a second rounding to a narrow float gives what one rounding would."""
    double, single, words = (types.vector(t, lanes) for t in ("double", "float", "i32"))
    near = b.op(f"fptrunc {double} {x} to {single}")
    back = b.op(f"fpext {single} {near} to {double}")
    pattern = b.op(f"bitcast {single} {near} to {words}")
    low = b.op(f"and {words} {pattern}, {types.splat('1', 'i32', lanes)}")
    even = b.op(f"icmp eq {words} {low}, {types.splat('0', 'i32', lanes)}")
    inexact = b.op(f"fcmp one {double} {back}, {x}")
    fix = b.op(f"and {types.vector('i1', lanes)} {even}, {inexact}")
    magnitude, other = b.intrinsic("fabs", "double", lanes, back), b.intrinsic("fabs", "double", lanes, x)
    above = b.op(f"fcmp ogt {double} {magnitude}, {other}")
    minus_one, one, zero = (types.splat(n, "i32", lanes) for n in ("-1", "1", "0"))
    step = b.select(words, lanes, above, minus_one, one)
    moved = b.op(f"add {words} {pattern}, {b.select(words, lanes, fix, step, zero)}")
    return b.op(f"bitcast {words} {moved} to {single}")


def _float_to_float(b: Builder, source: str, target: str, lanes: int, x: str) -> str:
    a, c = types.value_type(source, lanes), types.value_type(target, lanes)
    if target == "float64":
        return b.op(f"fpext {a} {x} to {c}")
    if target in types.STORAGE_FLOATS:
        # bfloat16 rounds twice, because ml_dtypes does (through float32).
        if source == "float64":
            x = _to_odd(b, lanes, x) if target == "float16" else b.op(f"fptrunc {a} {x} to {c}")
        return round_to_storage(b, target, lanes, x)
    return b.op(f"fptrunc {a} {x} to {c}") if source == "float64" else x


def _integer_to_integer(b: Builder, source: str, target: str, lanes: int, x: str) -> str:
    a, c = types.value_type(source, lanes), types.value_type(target, lanes)
    if types.bits(source) == types.bits(target):
        return x
    if types.bits(source) > types.bits(target):
        return b.op(f"trunc {a} {x} to {c}")
    return b.op(f"{'sext' if dtypes.is_signed(source) else 'zext'} {a} {x} to {c}")


def cast(b: Builder, source: str, target: str, lanes: int, x: str, known: FloatRange = ANYTHING, *, nearest: bool = False) -> str:
    """``x`` of dtype ``source`` as ``target``: as ``te.numeric.convert``.

    Args:
        known: of ``x``, if it is a float; rounded, where it is to be.
        nearest: ``x``, a float that becomes an integer, is rounded first, halves to even.
    """
    a, c = types.value_type(source, lanes), types.value_type(target, lanes)
    if source == target:
        return x
    if target == "bool":
        zero = types.splat(types.literal(0, source), types.VALUE[source], lanes)
        return b.op(f"{'fcmp une' if dtypes.is_float(source) else 'icmp ne'} {a} {x}, {zero}")
    if dtypes.is_float(target):
        if dtypes.is_float(source):
            return _float_to_float(b, source, target, lanes, x)
        if source == "bool":
            # 1 and 0 are right in every float. LLVM cannot convert masks of 64-bit lanes for SVE.
            return b.select(c, lanes, x, *(types.splat(types.literal(n, target), types.VALUE[target], lanes) for n in (1, 0)))
        number = b.op(f"{'sitofp' if dtypes.is_signed(source) else 'uitofp'} {a} {x} to {c}")
        return round_to_storage(b, target, lanes, number) if target in types.STORAGE_FLOATS else number
    if source == "bool":
        return b.op(f"zext {a} {x} to {c}")
    if dtypes.is_float(source):
        return truncation.to_integer(b, source, target, lanes, x, known, nearest=nearest)
    return _integer_to_integer(b, source, target, lanes, x)
