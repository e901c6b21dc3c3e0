"""Columns: numbers of many programs at once, as expressions of the rows that are not known yet.

What folds over a row of ints (``schedule/fold.py``, ``features/``) is written once, for one program, with the functions here
and Python's arithmetic. With ints it gives the numbers of one program. With a :class:`Column` for each choice it gives
columns: a :class:`Tape` has written down every operation, once, and ``program.py`` runs that on any population.

Flags are numbers too, 0 and 1: ``both`` is the smaller, ``either`` the larger one, ``negated`` is ``1 - flag``.

A column knows between which bounds its numbers lie. What follows from bounds costs nothing: a comparison that always comes
out the same way, a minimum of which one side is never taken, anything about loops that run once in all programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from operator import mul, truediv
from typing import TypeAlias

import numpy as np


class Op(IntEnum):
    """What a column is made by; all in float64."""

    CONSTANT = 0
    GATHER = 1  # a hole's table at the row's choice
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    MIN = 6
    MAX = 7
    LESS = 8
    AT_MOST = 9
    EQUAL = 10
    WHERE = 11
    FLOOR = 12
    CEIL = 13
    LOG2 = 14
    LOW_BIT = 15


_COMMUTATIVE = frozenset((Op.ADD, Op.MUL, Op.MIN, Op.MAX, Op.EQUAL))


class Column:
    """One number of every program: ``tape.nodes[number]``, between ``low`` and ``high``. Operators write on the tape."""

    __slots__ = ("high", "low", "number", "tape")

    def __init__(self, tape: Tape, number: int, low: float, high: float) -> None:
        self.tape = tape
        self.number = number
        self.low = low
        self.high = high

    def __add__(self, other: Number) -> Number:
        if _is(other, 0):
            return self
        low, high = _bounds(other)
        return self.tape.write(Op.ADD, self.low + low, self.high + high, self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        if _is(other, 0):
            return self
        if other is self:
            return 0
        low, high = _bounds(other)
        return self.tape.write(Op.SUB, self.low - high, self.high - low, self, other)

    def __rsub__(self, other: float) -> Number:
        return self.tape.write(Op.SUB, other - self.high, other - self.low, other, self)

    def __mul__(self, other: Number) -> Number:
        if _is(other, 1):
            return self
        if _is(other, 0):
            return 0
        low, high = _bounds(other)
        return self.tape.write(Op.MUL, *_corners(mul, (self.low, self.high), (low, high)), self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Number:
        if _is(other, 1):
            return self
        return self.tape.write(Op.DIV, *_corners(truediv, (self.low, self.high), _bounds(other)), self, other)

    def __rtruediv__(self, other: float) -> Number:
        return self.tape.write(Op.DIV, *_corners(truediv, (other, other), (self.low, self.high)), other, self)

    def __lt__(self, other: Number) -> Number:
        return _compare(self, other, Op.LESS)

    def __gt__(self, other: Number) -> Number:
        return _compare(other, self, Op.LESS)

    def __le__(self, other: Number) -> Number:
        return _compare(self, other, Op.AT_MOST)

    def __ge__(self, other: Number) -> Number:
        return _compare(other, self, Op.AT_MOST)

    def __bool__(self) -> bool:
        raise TypeError("a column is not one flag: choose with where(), combine with both(), either(), negated()")

    def __int__(self) -> int:
        raise TypeError("a column is not one number")


Number: TypeAlias = Column | float


class Tape:
    """Every operation on columns, once: equal operations are one column.

    Attributes:
        nodes: ``(op, *arguments)``, by number. Arguments are numbers of earlier columns; a gather's are its hole and its table.
        constants: the value of each constant column.
        tables: what gathers read.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[int, ...]] = []
        self.constants: dict[int, float] = {}
        self.tables: list[np.ndarray] = []
        self._known: dict[tuple[int, ...], Column] = {}
        self._numbers: dict[float, int] = {}
        self._places: dict[bytes, int] = {}

    def gather(self, hole: int, table: Sequence[int] | np.ndarray) -> Number:
        """``table`` at each row's choice for ``hole``."""
        values = np.asarray(table, dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        if low == high:
            return _plain(low)
        place = self._places.setdefault(values.tobytes(), len(self.tables))
        if place == len(self.tables):
            self.tables.append(values)
        return self._column((int(Op.GATHER), hole, place), low, high)

    def write(self, op: Op, low: float, high: float, *operands: Number) -> Number:
        """The column of an operation, or a number where the bounds leave only one."""
        if low == high and math.isfinite(low):
            return _plain(low)
        numbers = [operand.number if isinstance(operand, Column) else self.number(operand) for operand in operands]
        if op in _COMMUTATIVE:
            numbers.sort()
        return self._column((int(op), *numbers), low, high)

    def number(self, value: Number) -> int:
        """The number of a column; a constant becomes one."""
        if isinstance(value, Column):
            return value.number
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.nodes)
            self.nodes.append((int(Op.CONSTANT),))
            self.constants[number] = float(value)
        return number

    def _column(self, node: tuple[int, ...], low: float, high: float) -> Column:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = Column(self, len(self.nodes), low, high)
            self.nodes.append(node)
        return found


def where(flag: Number, yes: Number, no: Number) -> Number:
    """``yes`` where ``flag``, else ``no``."""
    if not isinstance(flag, Column):
        return yes if flag else no
    if yes is no or (not isinstance(yes, Column) and not isinstance(no, Column) and yes == no):
        return yes
    if _is(yes, 1) and _is(no, 0):
        return flag
    (a, b), (c, d) = _bounds(yes), _bounds(no)
    return flag.tape.write(Op.WHERE, min(a, c), max(b, d), flag, yes, no)


def minimum(a: Number, b: Number) -> Number:
    if not isinstance(a, Column) and not isinstance(b, Column):
        return min(a, b)
    (a_low, a_high), (b_low, b_high) = _bounds(a), _bounds(b)
    if a is b or a_high <= b_low:
        return a
    if b_high <= a_low:
        return b
    return _tape(a, b).write(Op.MIN, min(a_low, b_low), min(a_high, b_high), a, b)


def maximum(a: Number, b: Number) -> Number:
    if not isinstance(a, Column) and not isinstance(b, Column):
        return max(a, b)
    (a_low, a_high), (b_low, b_high) = _bounds(a), _bounds(b)
    if a is b or b_high <= a_low:
        return a
    if a_high <= b_low:
        return b
    return _tape(a, b).write(Op.MAX, max(a_low, b_low), max(a_high, b_high), a, b)


def both(a: Number, b: Number) -> Number:
    """Whether two flags are set."""
    return minimum(a, b)


def either(a: Number, b: Number) -> Number:
    """Whether one of two flags is set."""
    return maximum(a, b)


def negated(flag: Number) -> Number:
    """Whether a flag is not set."""
    return 1 - flag


def every(flags: Iterable[Number]) -> Number:
    """Whether all are set; of none, they are."""
    result: Number = 1
    for flag in flags:
        result = both(result, flag)
    return result


def equal(a: Number, b: Number) -> Number:
    """Whether two numbers are the same (``==`` compares columns, not what is in them)."""
    return _compare(a, b, Op.EQUAL)


def floor(x: Number) -> Number:
    if not isinstance(x, Column):
        return math.floor(x)
    return x.tape.write(Op.FLOOR, _rounded(math.floor, x.low), _rounded(math.floor, x.high), x)


def ceil(x: Number) -> Number:
    if not isinstance(x, Column):
        return math.ceil(x)
    return x.tape.write(Op.CEIL, _rounded(math.ceil, x.low), _rounded(math.ceil, x.high), x)


def log2(x: Number) -> Number:
    """Of a positive number; the result is within 1e-12."""
    if not isinstance(x, Column):
        return math.log2(x)
    low = math.log2(x.low) if x.low > 0 else -math.inf
    return x.tape.write(Op.LOG2, low, math.log2(x.high) if x.high > 0 else math.inf, x)


def low_bit(x: Number) -> Number:
    """The largest power of two that divides a positive whole number."""
    if not isinstance(x, Column):
        return int(x) & -int(x)
    return x.tape.write(Op.LOW_BIT, 1, x.high, x)


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
    first, last = int(which.low), int(which.high)
    result = choices[first]
    for position in range(first + 1, last + 1):
        result = where(position <= which, choices[position], result)
    return result


def largest(x: Number) -> float:
    """What the number is at most."""
    return x.high if isinstance(x, Column) else x


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value


def _is(value: Number, constant: float) -> bool:
    return not isinstance(value, Column) and value == constant


def _bounds(value: Number) -> tuple[float, float]:
    return (value.low, value.high) if isinstance(value, Column) else (value, value)


def _tape(a: Number, b: Number) -> Tape:
    column = a if isinstance(a, Column) else b
    assert isinstance(column, Column)
    return column.tape


def _rounded(how: Callable[[float], int], bound: float) -> float:
    return how(bound) if math.isfinite(bound) else bound


def _corners(how: Callable[[float, float], float], a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """The bounds of a product or quotient."""
    if how is mul and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], a[1] * b[1]
    if not all(map(math.isfinite, (*a, *b))) or (how is truediv and b[0] <= 0 <= b[1]):
        return -math.inf, math.inf
    corners = [how(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _compare(a: Number, b: Number, op: Op) -> Number:
    """A flag, known where the bounds say so."""
    (a_low, a_high), (b_low, b_high) = _bounds(a), _bounds(b)
    if op is Op.LESS:
        low, high = a_high < b_low, a_low < b_high and a is not b
    elif op is Op.AT_MOST:
        low, high = a_high <= b_low or a is b, a_low <= b_high
    else:
        low, high = a is b or a_low == a_high == b_low == b_high, a_low <= b_high and b_low <= a_high
    if low or not high:
        return int(low)
    return _tape(a, b).write(op, 0, 1, a, b)
