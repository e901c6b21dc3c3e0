"""What Python has no operators for, of plain numbers and of columns alike.

Flags are numbers too, 0 and 1: ``both`` is the smaller, ``either`` the larger one, ``negated`` is ``1 - flag``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from ansorlite.columns.tape import Column, Number, Op, Tape, bounds

_MIN, _MAX, _EQUAL, _WHERE = (int(op) for op in (Op.MIN, Op.MAX, Op.EQUAL, Op.WHERE))
_FLOOR, _CEIL, _LOG2, _LOW_BIT = (int(op) for op in (Op.FLOOR, Op.CEIL, Op.LOG2, Op.LOW_BIT))
_SELECT: Final = int(Op.SELECT)
_T = TypeVar("_T")


def where(flag: Number, yes: Number, no: Number) -> Number:
    """``yes`` where ``flag``, else ``no``."""
    if not isinstance(flag, Column):
        return yes if flag else no
    if yes is no:
        return yes
    tape = flag.tape
    if isinstance(yes, Column):
        a, low, high = yes.number, yes.low, yes.high
    elif isinstance(no, Column):
        a, low, high = tape.number(yes), yes, yes
    elif yes == no:
        return yes
    elif yes == 1 and no == 0:
        return flag
    else:
        return tape.write((_WHERE, flag.number, tape.number(yes), tape.number(no)), min(yes, no), max(yes, no))
    if isinstance(no, Column):
        b = no.number
        low = no.low if no.low < low else low
        high = no.high if no.high > high else high
    else:
        b = tape.number(no)
        low = no if no < low else low
        high = no if no > high else high
    return tape.write((_WHERE, flag.number, a, b), low, high)


def minimum(a: Number, b: Number) -> Number:
    if not isinstance(a, Column):
        if not isinstance(b, Column):
            return min(a, b)
        a, b = b, a
    if isinstance(b, Column):
        b_low, b_high = b.low, b.high
    else:
        b_low = b_high = b
    if a.high <= b_low or a is b:
        return a
    if b_high <= a.low:
        return b
    low, high = a.low if a.low < b_low else b_low, a.high if a.high < b_high else b_high
    tape = a.tape
    return tape.symmetric(_MIN, a.number, b.number if isinstance(b, Column) else tape.number(b), low, high)


def maximum(a: Number, b: Number) -> Number:
    if not isinstance(a, Column):
        if not isinstance(b, Column):
            return max(a, b)
        a, b = b, a
    if isinstance(b, Column):
        b_low, b_high = b.low, b.high
    else:
        b_low = b_high = b
    if b_high <= a.low or a is b:
        return a
    if a.high <= b_low:
        return b
    low, high = a.low if a.low > b_low else b_low, a.high if a.high > b_high else b_high
    tape = a.tape
    return tape.symmetric(_MAX, a.number, b.number if isinstance(b, Column) else tape.number(b), low, high)


#: Whether two flags are set.
both = minimum
#: Whether one of two flags is set.
either = maximum


def negated(flag: Number) -> Number:
    """Whether a flag is not set."""
    return 1 - flag


def every(flags: Iterable[Number]) -> Number:
    """Whether all are set; of none, they are."""
    result: Number = 1
    for flag in flags:
        result = both(result, flag)
    return result


def some(flags: Iterable[Number]) -> Number:
    """Whether one is set; of none, no."""
    result: Number = 0
    for flag in flags:
        result = either(result, flag)
    return result


def equal(a: Number, b: Number) -> Number:
    """Whether two numbers are the same (``==`` compares columns, not what is in them)."""
    if a is b:
        return 1
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    if a_high < b_low or b_high < a_low:
        return 0
    if a_low == a_high == b_low == b_high:
        return 1
    tape = _tape(a, b)
    return tape.symmetric(_EQUAL, tape.number(a), tape.number(b), 0, 1)


def floor(x: Number) -> Number:
    if not isinstance(x, Column):
        return math.floor(x)
    return x.tape.write((_FLOOR, x.number), *_rounded(math.floor, x))


def floor_divided(x: Number, divisor: int) -> Number:
    """``x // divisor`` of a whole or an infinite number; the divisor is positive."""
    if not isinstance(x, Column):
        return x if math.isinf(x) else x // divisor
    return floor(x / divisor)


def modulo(x: Number, divisor: Number) -> Number:
    """The remainder of a whole number, at least 0; the divisor is positive."""
    return x - floor(x / divisor) * divisor


def ceil(x: Number) -> Number:
    if not isinstance(x, Column):
        return math.ceil(x)
    return x.tape.write((_CEIL, x.number), *_rounded(math.ceil, x))


def _rounded(how: Callable[[float], int], x: Column) -> tuple[float, float]:
    """Its bounds."""
    return how(x.low) if math.isfinite(x.low) else x.low, how(x.high) if math.isfinite(x.high) else x.high


def log2(x: Number) -> Number:
    """Of a positive number; the result is within 1e-12."""
    if not isinstance(x, Column):
        return math.log2(x)
    low = math.log2(x.low) if x.low > 0 else -math.inf
    return x.tape.write((_LOG2, x.number), low, math.log2(x.high) if x.high > 0 else math.inf)


def low_bit(x: Number) -> Number:
    """The largest power of two that divides a positive whole number."""
    if not isinstance(x, Column):
        return int(x) & -int(x)
    return x.tape.write((_LOW_BIT, x.number), 1, x.high)


def product(factors: Iterable[Number]) -> Number:
    result: Number = 1
    for factor in factors:
        result = result * factor
    return result


def total(terms: Iterable[Number]) -> Number:
    result: Number = 0
    for term in terms:
        result = result + term
    return result


def select(choices: Sequence[Number], which: Number) -> Number:
    """``choices[which]``."""
    if not isinstance(which, Column):
        return choices[int(which)]
    first = int(which.low)
    open_ = choices[first : int(which.high) + 1]
    if all(choice is open_[0] for choice in open_):
        return open_[0]
    if len(open_) == 2:
        return where(first < which, open_[1], open_[0])
    tape = which.tape
    lows, highs = zip(*map(bounds, open_), strict=True)
    return tape.write((_SELECT, which.number, first, *map(tape.number, open_)), min(lows), max(highs))


def along(function: Callable[..., _T], *numbers: Sequence[Number]) -> list[_T]:
    """``function`` of the first of all ``numbers``, of the second, and so on; where nothing has changed it is not asked again."""
    result: list[_T] = []
    before: tuple[Number, ...] = ()
    for here in zip(*numbers, strict=True):
        result.append(result[-1] if here == before else function(*here))
        before = here
    return result


def largest(x: Number) -> float:
    """What the number is at most."""
    return x.high if isinstance(x, Column) else x


def _tape(a: Number, b: Number) -> Tape:
    column = a if isinstance(a, Column) else b
    assert isinstance(column, Column)
    return column.tape
