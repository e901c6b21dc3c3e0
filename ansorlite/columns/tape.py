"""Columns: numbers of many programs at once, as expressions of the rows that are not known yet.

What folds over a row of ints (``schedule/fold.py``, ``features/``) is written once, for one program, with Python's arithmetic
and the functions of ``arithmetic.py``. With ints it gives the numbers of one program. With a :class:`Column` for each choice
it gives columns: a :class:`Tape` has written down every operation, once, and ``program.py`` runs that on any population.

A column knows between which bounds its numbers lie. What follows from bounds costs nothing: a comparison that always comes
out the same way, a minimum of which one side is never taken, anything about loops that run once in all programs.

A sketch takes thousands of operations, and its user waits for them: an operation is a tuple of ints, its ops are plain ints
here, and only what is new is looked at closely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, TypeAlias

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
    SELECT = 16  # one of many columns
    CALL = 17  # a compound operation, which has several results
    RESULT = 18  # one of them


#: The node of every constant.
CONSTANT: Final = (int(Op.CONSTANT),)
_GATHER, _ADD, _SUB, _MUL, _DIV = (int(op) for op in (Op.GATHER, Op.ADD, Op.SUB, Op.MUL, Op.DIV))
_LESS, _AT_MOST, _CALL, _RESULT = (int(op) for op in (Op.LESS, Op.AT_MOST, Op.CALL, Op.RESULT))


class Column:
    """One number of every program: ``tape.nodes[number]``, between ``low`` and ``high``. Operators write on the tape."""

    __slots__ = ("high", "low", "number", "tape")

    def __init__(self, tape: Tape, number: int, low: float, high: float) -> None:
        self.tape = tape
        self.number = number
        self.low = low
        self.high = high

    def __add__(self, other: Number) -> Number:
        if isinstance(other, Column):
            return self.tape.symmetric(_ADD, self.number, other.number, self.low + other.low, self.high + other.high)
        if other == 0:
            return self
        return self.tape.symmetric(_ADD, self.number, self.tape.number(other), self.low + other, self.high + other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        if isinstance(other, Column):
            if other is self:
                return 0
            return self.tape.write((_SUB, self.number, other.number), self.low - other.high, self.high - other.low)
        if other == 0:
            return self
        return self.tape.write((_SUB, self.number, self.tape.number(other)), self.low - other, self.high - other)

    def __rsub__(self, other: float) -> Number:
        return self.tape.write((_SUB, self.tape.number(other), self.number), other - self.high, other - self.low)

    def __mul__(self, other: Number) -> Number:
        if isinstance(other, Column):
            low, high, number = other.low, other.high, other.number
        elif other == 1:
            return self
        elif other == 0:
            return 0
        else:
            low = high = other
            number = self.tape.number(other)
        if self.low >= 0 and low >= 0:
            return self.tape.symmetric(_MUL, self.number, number, self.low * low, self.high * high)
        if not all(map(math.isfinite, (self.low, self.high, low, high))):
            return self.tape.symmetric(_MUL, self.number, number, -math.inf, math.inf)
        corners = (self.low * low, self.low * high, self.high * low, self.high * high)
        return self.tape.symmetric(_MUL, self.number, number, min(corners), max(corners))

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Number:
        if not isinstance(other, Column) and other == 1:
            return self
        return _quotient(self.tape, self, other)

    def __rtruediv__(self, other: float) -> Number:
        return _quotient(self.tape, other, self)

    def __lt__(self, other: Number) -> Number:
        low, high = bounds(other)
        if self.high < low:
            return 1
        if self.low >= high or other is self:
            return 0
        return self.tape.write((_LESS, self.number, self.tape.number(other)), 0, 1)

    def __gt__(self, other: Number) -> Number:
        low, high = bounds(other)
        if high < self.low:
            return 1
        if low >= self.high or other is self:
            return 0
        return self.tape.write((_LESS, self.tape.number(other), self.number), 0, 1)

    def __le__(self, other: Number) -> Number:
        low, high = bounds(other)
        if self.high <= low or other is self:
            return 1
        if self.low > high:
            return 0
        return self.tape.write((_AT_MOST, self.number, self.tape.number(other)), 0, 1)

    def __ge__(self, other: Number) -> Number:
        low, high = bounds(other)
        if high <= self.low or other is self:
            return 1
        if low > self.high:
            return 0
        return self.tape.write((_AT_MOST, self.tape.number(other), self.number), 0, 1)

    def __bool__(self) -> bool:
        raise TypeError("a column is not one flag: choose with where(), combine with both(), either(), negated()")

    def __int__(self) -> int:
        raise TypeError("a column is not one number")


Number: TypeAlias = Column | float


class Tape:
    """Every operation on columns, once: equal operations are one column.

    Attributes:
        nodes: ``(op, *arguments)``, by number. Arguments are numbers of earlier columns; a gather's are its hole and its table,
            and after its index a select has what the first of its choices is chosen by. In front of its arguments a call
            has the address of its function, how many items it folds and how many results it has, the nodes behind it.
        constants: the value of each constant column.
        tables: what gathers read.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[int, ...]] = []
        self.constants: dict[int, float] = {}
        self.tables: list[np.ndarray] = []
        self._known: dict[tuple[int, ...], Column] = {}
        self._called: dict[tuple[int, ...], tuple[Number, ...]] = {}
        self._numbers: dict[float, int] = {}
        self._places: dict[bytes, int] = {}

    def gather(self, hole: int, table: Sequence[int] | np.ndarray) -> Number:
        """``table`` at each row's choice for ``hole``."""
        values = np.asarray(table, dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        place = self._places.setdefault(values.tobytes(), len(self.tables))
        if place == len(self.tables):
            self.tables.append(values)
        return self.write((_GATHER, hole, place), low, high)

    def write(self, node: tuple[int, ...], low: float, high: float) -> Number:
        """The column of an operation, or a number where the bounds leave only one."""
        found = self._known.get(node)
        return self._new(node, low, high) if found is None else found

    def symmetric(self, op: int, a: int, b: int, low: float, high: float) -> Number:
        """The column of an operation on the columns ``a`` and ``b``, in either order."""
        node = (op, a, b) if a < b else (op, b, a)
        found = self._known.get(node)
        return self._new(node, low, high) if found is None else found

    def _new(self, node: tuple[int, ...], low: float, high: float) -> Number:
        if low == high and math.isfinite(low):
            return int(low) if low == int(low) else low
        nodes = self.nodes
        made = self._known[node] = Column(self, len(nodes), low, high)
        nodes.append(node)
        return made

    def call(
        self, address: int, items: int, arguments: Sequence[Number], bounds: Sequence[tuple[float, float]]
    ) -> tuple[Number, ...]:
        """What a compound operation gives: columns, and numbers where the bounds leave only one."""
        numbers = [each.number if isinstance(each, Column) else self.number(each) for each in arguments]
        node = (_CALL, address, items, len(bounds), *numbers)
        found = self._called.get(node)
        if found is None:
            call = len(self.nodes)
            self.nodes += (node, *[(_RESULT, call)] * len(bounds))
            made = enumerate(bounds, call + 1)
            found = tuple([low if low == high else Column(self, number, low, high) for number, (low, high) in made])
            self._called[node] = found
        return found

    def number(self, value: Number) -> int:
        """The number of a column; a constant becomes one."""
        if isinstance(value, Column):
            return value.number
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.nodes)
            self.nodes.append(CONSTANT)
            self.constants[number] = float(value)
        return number

    def close(self) -> None:
        """Forget the columns: they know their tape, so that together they would wait for the garbage collector."""
        self._known.clear()
        self._called.clear()


def bounds(value: Number) -> tuple[float, float]:
    """Between which its numbers lie."""
    return (value.low, value.high) if isinstance(value, Column) else (value, value)


def _quotient(tape: Tape, a: Number, b: Number) -> Number:
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    node = (_DIV, tape.number(a), tape.number(b))
    if a_low >= 0 and b_low > 0 and a_high < math.inf and b_high < math.inf:
        return tape.write(node, a_low / b_high, a_high / b_low)
    if b_low <= 0 <= b_high or not all(map(math.isfinite, (a_low, a_high, b_low, b_high))):
        return tape.write(node, -math.inf, math.inf)
    corners = (a_low / b_low, a_low / b_high, a_high / b_low, a_high / b_high)
    return tape.write(node, min(corners), max(corners))
