"""What every printed program begins with: the operations that OpenCL C has not, or has with another meaning."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

#: dtype → (type of values, type in memory). Narrow floats are values of float, rounded whenever one is made.
TYPES: Final[dict[str, tuple[str, str]]] = {
    "bool": ("int", "uchar"),
    "int8": ("char", "char"),
    "int16": ("short", "short"),
    "int32": ("int", "int"),
    "int64": ("long", "long"),
    "uint8": ("uchar", "uchar"),
    "uint16": ("ushort", "ushort"),
    "uint32": ("uint", "uint"),
    "uint64": ("ulong", "ulong"),
    "float16": ("float", "ushort"),
    "bfloat16": ("float", "ushort"),
    "float32": ("float", "float"),
    "float64": ("double", "double"),
}

#: Before it where a program has float64.
DOUBLES: Final = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"

_NARROW: Final = """
inline float load_float16(ushort bits) { return vload_half(0, (const __private half *)&bits); }
inline ushort store_float16(float x) { ushort bits; vstore_half_rte(x, 0, (__private half *)&bits); return bits; }
inline float round_float16(float x) { return load_float16(store_float16(x)); }
inline float load_bfloat16(ushort bits) { return as_float((uint)bits << 16); }
inline ushort store_bfloat16(float x) {
  const uint bits = as_uint(x);
  return x != x ? (ushort)((bits >> 16) | 0x40) : (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float round_bfloat16(float x) { return load_bfloat16(store_bfloat16(x)); }
"""

#: Quotients are rounded down and those by 0 are 0; amounts of shifts are any; powers of 1 and -1 are all that negative exponents
#: leave of integers. T is the type, U the unsigned one of the same width.
_INTEGERS: Final = """
inline T power_T(T x, T y) {
  if (NEGATIVE(y)) return x == 1 ? 1 : x == (T)-1 ? ((y & 1) ? (T)-1 : 1) : 0;
  U base = (U)x, result = 1;
  for (U n = (U)y; n; n >>= 1) { if (n & 1) result *= base; base *= base; }
  return (T)result;
}
inline T shl_T(T x, T y) { return (U)y < BITS ? (T)((U)x << (U)y) : 0; }
inline T shr_T(T x, T y) { return (U)y < BITS ? x >> (U)y : NEGATIVE(x) ? (T)-1 : 0; }
inline T floordiv_T(T x, T y) {
  if (y == 0) return 0;
  if (SIGNED && y == (T)-1) return (T)(0 - (U)x);
  return (T)(x / y) - (T)(x % y != 0 && NEGATIVE(x) != NEGATIVE(y));
}
inline T mod_T(T x, T y) {
  if (y == 0 || (SIGNED && y == (T)-1)) return 0;
  const T rest = x % y;
  return rest != 0 && NEGATIVE(rest) != NEGATIVE(y) ? (T)(rest + y) : rest;
}
"""

_FLOATS: Final = """
inline T minimum_T(T x, T y) { return x <= y || x != x ? x : y; }
inline T maximum_T(T x, T y) { return x >= y || x != x ? x : y; }
inline T mod_T(T x, T y) {
  T rest = fmod(x, y);
  if (y == 0) return rest;
  if (rest == 0) return copysign((T)0, y);
  return (y < 0) != (rest < 0) ? rest + y : rest;
}
inline T floordiv_T(T x, T y) {
  if (y == 0) return x / y;
  const T rest = fmod(x, y);
  T whole = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) whole -= 1;
  if (whole == 0) return copysign((T)0, x / y);
  const T below = floor(whole);
  return whole - below > (T)0.5 ? below + 1 : below;
}
inline T number_T(T x) { return x != x ? 0 : x; }
inline T sigmoid_T(T x) { return 1 / (1 + exp(-x)); }
"""


_NAME: Final = re.compile(r"inline \w+ (\w+)\(")


def _integers(name: str, bits: int) -> str:
    signed = name[0] != "u"
    text = _INTEGERS.replace("_T(", f"_{name}(").replace("BITS", str(bits)).replace("SIGNED", str(int(signed)))
    text = re.sub(r"NEGATIVE\((\w+)\)", r"(\1 < 0)" if signed else "0", text)
    return _typed(_typed(text, "T", name), "U", name if not signed else f"u{name}")


def _typed(text: str, letter: str, name: str) -> str:
    return re.sub(rf"\b{letter}\b", name, text)


@cache
def _functions() -> dict[str, str]:
    """All of them, by name, in an order in which each comes before those that call it."""
    parts = [_NARROW]
    for name, bits in {"char": 8, "short": 16, "int": 32, "long": 64}.items():
        parts += [_integers(name, bits), _integers(f"u{name}", bits)]
    parts += [_typed(_FLOATS.replace("_T(", f"_{name}("), "T", name) for name in ("float", "double")]
    found: dict[str, str] = {}
    for text in "".join(parts).split("\ninline "):
        if text.strip():
            whole = f"inline {text.strip()}\n"
            match = _NAME.match(whole)
            assert match is not None
            found[match[1]] = whole
    return found


def prelude(program: str, doubles: bool) -> str:
    """What ``program`` needs of it.

    Args:
        doubles: whether the program has float64.
    """
    needed: list[str] = []
    for name, text in reversed(_functions().items()):
        if any(f"{name}(" in each for each in (program, *needed)):
            needed.append(text)
    return (DOUBLES if doubles else "") + "".join(reversed(needed))
