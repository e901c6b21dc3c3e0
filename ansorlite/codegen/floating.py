"""Floating-point operations whose meaning in numpy is not one instruction: minimum, division with floor."""

from __future__ import annotations

import math
from typing import Final

from ansorlite.codegen import remainder, types
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.integer import per_lane

#: All bits set, in LLVM's hexadecimal form.
_ONES: Final = {"float": "0xFFFFFFFFE0000000", "double": "0xFFFFFFFFFFFFFFFF"}


def is_number(literal: str) -> bool:
    """Whether an operand is a literal (or a splat of one) that is not NaN."""
    value = types.number_of(literal)
    return value is not None and not math.isnan(value)


def extremum(b: Builder, dtype: str, lanes: int, x: str, y: str, comparison: str, *, number: bool = False) -> str:
    """``x`` where ``x comparison y`` else ``y``, and NaN where either is NaN.

    ``x > y ? x : y`` is one maxps, which gives its second operand when either is NaN. So what is known to be a number goes
    first, and only when both operands may be NaN does it take a test, of ``y``: where ``x`` accumulates, that is the short
    chain. A NaN of ones is what the test has in its lanes; LLVM would make one choice of two that give ``y``, and no maxps.

    Args:
        number: whether ``x`` is known to be no NaN, though it is no literal.
    """
    kind = types.value_type(dtype, lanes)
    if not (number or is_number(x)):
        x, y = y, x
    chosen = b.select(kind, lanes, b.op(f"fcmp {comparison} {kind} {x}, {y}"), x, y)
    if number or is_number(x):
        return chosen
    element = types.VALUE[dtype]
    ones = types.splat(_ONES[element], element, lanes)
    return b.select(kind, lanes, b.op(f"fcmp uno {kind} {x}, {x}"), ones, chosen)


def _fmod(b: Builder, element: str, lanes: int, x: str, y: str) -> str:
    if architecture_of(b.module.target).library:
        name = "fmodf" if element == "float" else "fmod"
        b.module.declare(f"{element} @{name}({element}, {element})")
    else:
        name = remainder.function(b, element)
    return per_lane(b, element, lanes, f"@{name}", x, y)


def _divmod(b: Builder, dtype: str, lanes: int, x: str, y: str) -> tuple[str, str]:
    """numpy's ``npy_divmod`` for y != 0: (quotient before rounding, modulo with the sign of y)."""
    element, kind, mask = types.VALUE[dtype], types.value_type(dtype, lanes), types.vector("i1", lanes)
    zero, one = (types.splat(types.float_literal(v, dtype), element, lanes) for v in (0.0, 1.0))
    rest = _fmod(b, element, lanes, x, y)
    difference = b.op(f"fsub {kind} {x}, {rest}")
    quotient = b.op(f"fdiv {kind} {difference}, {y}")
    y_negative = b.op(f"fcmp olt {kind} {y}, {zero}")
    rest_negative = b.op(f"fcmp olt {kind} {rest}, {zero}")
    opposite = b.op(f"xor {mask} {y_negative}, {rest_negative}")
    inexact = b.op(f"fcmp une {kind} {rest}, {zero}")
    correct = b.op(f"and {mask} {opposite}, {inexact}")
    shifted_rest = b.op(f"fadd {kind} {rest}, {y}")
    shifted_quotient = b.op(f"fsub {kind} {quotient}, {one}")
    signed_zero = b.intrinsic("copysign", element, lanes, zero, y)
    exact_rest = b.select(kind, lanes, inexact, rest, signed_zero)
    modulo = b.select(kind, lanes, correct, shifted_rest, exact_rest)
    return b.select(kind, lanes, correct, shifted_quotient, quotient), modulo


def floor_divide(b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    element, kind = types.VALUE[dtype], types.value_type(dtype, lanes)
    zero, half, one = (types.splat(types.float_literal(v, dtype), element, lanes) for v in (0.0, 0.5, 1.0))
    quotient, _ = _divmod(b, dtype, lanes, x, y)
    plain = b.op(f"fdiv {kind} {x}, {y}")
    floor = b.intrinsic("floor", element, lanes, quotient)
    excess = b.op(f"fsub {kind} {quotient}, {floor}")
    up = b.op(f"fcmp ogt {kind} {excess}, {half}")
    above = b.op(f"fadd {kind} {floor}, {one}")
    rounded = b.select(kind, lanes, up, above, floor)
    not_zero = b.op(f"fcmp une {kind} {quotient}, {zero}")
    signed_zero = b.intrinsic("copysign", element, lanes, zero, plain)
    result = b.select(kind, lanes, not_zero, rounded, signed_zero)
    by_zero = b.op(f"fcmp oeq {kind} {y}, {zero}")
    return b.select(kind, lanes, by_zero, plain, result)


def modulo(b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    """Has the sign of ``y``; NaN where ``y`` is 0."""
    element, kind = types.VALUE[dtype], types.value_type(dtype, lanes)
    zero = types.splat(types.float_literal(0.0, dtype), element, lanes)
    nan = types.splat(types.float_literal(float("nan"), dtype), element, lanes)
    _, result = _divmod(b, dtype, lanes, x, y)
    by_zero = b.op(f"fcmp oeq {kind} {y}, {zero}")
    return b.select(kind, lanes, by_zero, nan, result)
