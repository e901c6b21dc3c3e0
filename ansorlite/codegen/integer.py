"""Integer operations whose meaning in numpy is not one instruction: division, modulo, shifts, power."""

from __future__ import annotations

from ansorlite.codegen import types
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.builder import Builder
from ansorlite.te import dtypes

# Every function takes (builder, dtype, lanes, operands as text) and returns the result as text.


def _truncated(b: Builder, dtype: str, lanes: int, x: str, y: str, remainder: bool) -> tuple[str, str, str]:
    """Division that traps on nothing: (result, divisor used, whether y is zero). y = 0 and MIN / -1 divide by 1."""
    kind = types.value_type(dtype, lanes)
    one, zero = (types.splat(text, types.VALUE[dtype], lanes) for text in ("1", "0"))
    by_zero = b.op(f"icmp eq {kind} {y}, {zero}")
    unsafe = by_zero
    if dtypes.is_signed(dtype):
        lowest, minus_one = (types.splat(str(n), types.VALUE[dtype], lanes) for n in (-(1 << (types.bits(dtype) - 1)), -1))
        at_lowest = b.op(f"icmp eq {kind} {x}, {lowest}")
        by_minus_one = b.op(f"icmp eq {kind} {y}, {minus_one}")
        mask = types.vector("i1", lanes)
        overflow = b.op(f"and {mask} {at_lowest}, {by_minus_one}")
        unsafe = b.op(f"or {mask} {by_zero}, {overflow}")
    divisor = b.select(kind, lanes, unsafe, one, y)
    sign = "s" if dtypes.is_signed(dtype) else "u"
    return b.op(f"{sign}{'rem' if remainder else 'div'} {kind} {x}, {divisor}"), divisor, by_zero


def _signs_differ(b: Builder, dtype: str, lanes: int, remainder: str, y: str) -> str:
    """Whether a truncated division must be corrected to round down: remainder not zero, its sign not y's."""
    kind, mask = types.value_type(dtype, lanes), types.vector("i1", lanes)
    zero = types.splat("0", types.VALUE[dtype], lanes)
    inexact = b.op(f"icmp ne {kind} {remainder}, {zero}")
    mixed = b.op(f"xor {kind} {remainder}, {y}")
    opposite = b.op(f"icmp slt {kind} {mixed}, {zero}")
    return b.op(f"and {mask} {inexact}, {opposite}")


def floor_divide(b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    """Rounds toward minus infinity; 0 where ``y`` is 0."""
    kind = types.value_type(dtype, lanes)
    quotient, divisor, by_zero = _truncated(b, dtype, lanes, x, y, remainder=False)
    if dtypes.is_signed(dtype):
        product = b.op(f"mul {kind} {quotient}, {divisor}")
        remainder = b.op(f"sub {kind} {x}, {product}")
        correct = _signs_differ(b, dtype, lanes, remainder, y)
        step = b.op(f"sext {types.vector('i1', lanes)} {correct} to {kind}")
        quotient = b.op(f"add {kind} {quotient}, {step}")
    return b.select(kind, lanes, by_zero, types.splat("0", types.VALUE[dtype], lanes), quotient)


def modulo(b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    """Has the sign of ``y``; 0 where ``y`` is 0."""
    kind, zero = types.value_type(dtype, lanes), types.splat("0", types.VALUE[dtype], lanes)
    remainder, _, by_zero = _truncated(b, dtype, lanes, x, y, remainder=True)
    if dtypes.is_signed(dtype):
        correct = _signs_differ(b, dtype, lanes, remainder, y)
        step = b.select(kind, lanes, correct, y, zero)
        remainder = b.op(f"add {kind} {remainder}, {step}")
    return b.select(kind, lanes, by_zero, zero, remainder)


def divide_by_constant(b: Builder, dtype: str, lanes: int, x: str, divisor: int, non_negative: bool) -> str:
    """``x // divisor`` for a positive literal divisor."""
    kind, element = types.value_type(dtype, lanes), types.VALUE[dtype]
    if non_negative or not dtypes.is_signed(dtype):
        return b.op(f"udiv {kind} {x}, {types.splat(str(divisor), element, lanes)}")
    if divisor & (divisor - 1) == 0:
        return b.op(f"ashr {kind} {x}, {types.splat(str(divisor.bit_length() - 1), element, lanes)}")
    # For negative x, -(x + 1) = ~x is non-negative, and x // d == ~(~x // d).
    sign = b.op(f"ashr {kind} {x}, {types.splat(str(types.bits(dtype) - 1), element, lanes)}")
    folded = b.op(f"xor {kind} {x}, {sign}")
    quotient = b.op(f"udiv {kind} {folded}, {types.splat(str(divisor), element, lanes)}")
    return b.op(f"xor {kind} {quotient}, {sign}")


def modulo_constant(b: Builder, dtype: str, lanes: int, x: str, divisor: int, non_negative: bool) -> str:
    """``x % divisor`` for a positive literal divisor."""
    kind, element = types.value_type(dtype, lanes), types.VALUE[dtype]
    if divisor & (divisor - 1) == 0:
        return b.op(f"and {kind} {x}, {types.splat(str(divisor - 1), element, lanes)}")
    if non_negative or not dtypes.is_signed(dtype):
        return b.op(f"urem {kind} {x}, {types.splat(str(divisor), element, lanes)}")
    quotient = divide_by_constant(b, dtype, lanes, x, divisor, non_negative)
    product = b.op(f"mul {kind} {quotient}, {types.splat(str(divisor), element, lanes)}")
    return b.op(f"sub {kind} {x}, {product}")


def _shift(b: Builder, dtype: str, lanes: int, instruction: str, x: str, y: str) -> tuple[str, str]:
    """(shifted by an amount that is in range, whether it was). A negative amount counts as too large, as in numpy."""
    kind, element = types.value_type(dtype, lanes), types.VALUE[dtype]
    inside = b.op(f"icmp ult {kind} {y}, {types.splat(str(types.bits(dtype)), element, lanes)}")
    if architecture_of(b.module.target).shifts_by_words:
        amount = b.op(f"and {kind} {y}, {types.splat(str(types.bits(dtype) - 1), element, lanes)}")
    else:
        amount = b.select(kind, lanes, inside, y, types.splat("0", element, lanes))
    return b.op(f"{instruction} {kind} {x}, {amount}"), inside


def shift_left(b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    shifted, inside = _shift(b, dtype, lanes, "shl", x, y)
    return b.select(types.value_type(dtype, lanes), lanes, inside, shifted, types.splat("0", types.VALUE[dtype], lanes))


def shift_right(b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    """Arithmetic for signed dtypes; all bits out gives 0 or -1."""
    kind, element = types.value_type(dtype, lanes), types.VALUE[dtype]
    if not dtypes.is_signed(dtype):
        shifted, inside = _shift(b, dtype, lanes, "lshr", x, y)
        return b.select(kind, lanes, inside, shifted, types.splat("0", element, lanes))
    last = types.splat(str(types.bits(dtype) - 1), element, lanes)
    inside = b.op(f"icmp ult {kind} {y}, {last}")
    amount = b.select(kind, lanes, inside, y, last)
    return b.op(f"ashr {kind} {x}, {amount}")


def power(b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    """Wraps around; with a negative exponent, 1 / x ** -y cut off to an integer, and 0 for 0."""
    element, kind = types.VALUE[dtype], types.value_type(dtype, lanes)
    name = f"power.{element}"
    if not b.module.has(name):
        b.module.define(name, _POWER.replace("$T", element).replace("$N", name))
    # A negative exponent is read as unsigned, which is right for -1, 0 and 1: it is odd where the exponent is.
    result = per_lane(b, element, lanes, f"@{name}", x, y)
    if not dtypes.is_signed(dtype):
        return result
    zero, one, three = (types.splat(text, element, lanes) for text in ("0", "1", "3"))
    negative = b.op(f"icmp slt {kind} {y}, {zero}")
    other = b.op(f"icmp uge {kind} {b.op(f'add {kind} {x}, {one}')}, {three}")
    vanishes = b.op(f"and {types.vector('i1', lanes)} {negative}, {other}")
    return b.select(kind, lanes, vanishes, zero, result)


def per_lane(b: Builder, element: str, lanes: int, function: str, *operands: str) -> str:
    """A scalar function applied to every lane."""
    kind = types.vector(element, lanes)
    if lanes == 1:
        return b.op(f"call {element} {function}({', '.join(f'{element} {operand}' for operand in operands)})")
    result = "poison"
    for lane in range(lanes):
        scalars = [b.op(f"extractelement {kind} {operand}, i64 {lane}") for operand in operands]
        value = b.op(f"call {element} {function}({', '.join(f'{element} {scalar}' for scalar in scalars)})")
        result = b.op(f"insertelement {kind} {result}, {element} {value}, i64 {lane}")
    return result


_POWER = """define internal $T @$N($T %x, $T %y) #1 {
entry:
  br label %loop
loop:
  %result = phi $T [ 1, %entry ], [ %next.result, %again ]
  %base = phi $T [ %x, %entry ], [ %next.base, %again ]
  %left = phi $T [ %y, %entry ], [ %next.left, %again ]
  %done = icmp eq $T %left, 0
  br i1 %done, label %end, label %again
again:
  %low = and $T %left, 1
  %odd = icmp ne $T %low, 0
  %times = mul $T %result, %base
  %next.result = select i1 %odd, $T %times, $T %result
  %next.base = mul $T %base, %base
  %next.left = lshr $T %left, 1
  br label %loop
end:
  ret $T %result
}"""
