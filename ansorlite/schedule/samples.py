"""What a schedule leaves open: holes, and the symbols that stand for what is chosen for them.

A function that schedules is run once, and what it samples are symbols: numbers that are not known yet. Arithmetic on them gives
symbols again. Where Python needs the number itself (``if``, ``range``, ``int``, a comparison) there is one structure for each
choice: :class:`Fork` tells whoever runs the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.arithmetic import floor
from ansorlite.columns.tape import Number
from ansorlite.errors import ScheduleError
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.tiles import TileTable


@dataclass(frozen=True)
class Tile:
    """What tiles a hole chooses from: the arguments of ``sample_tile``."""

    loop: LoopRef
    parts: int
    perfect: bool
    innermost: tuple[int, ...] | None
    max_innermost: int
    most: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class Hole:
    """One decision: an index into a list of choices.

    Attributes:
        name: unique in its schedule, for example ``C.i``.
        choices: what the index selects, in a natural order; for a tile the rows of its table.
        table: the tile table, when the hole is a tile.
        tile: which tiles these are.
        weights: how likely each choice is to be sampled; ``None``: all alike.
    """

    name: str
    choices: tuple[int, ...] = ()
    table: TileTable | None = None
    tile: Tile | None = None
    weights: tuple[float, ...] | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return self.table.rows if self.table is not None else len(self.choices)


#: A hole, and the table of a number for each of its choices, to the number that is chosen.
Choose: TypeAlias = Callable[[Hole, NDArray[np.int64]], Number]


class Fork(BaseException):
    """A function needs to know what is chosen for ``hole``: it is to be run once for each choice.

    No :class:`Exception`, so that no handler of the function's own takes it for a failure.
    """

    def __init__(self, hole: Hole) -> None:
        super().__init__(hole.name)
        self.hole = hole


class Operator(Enum):
    """Arithmetic on symbols. The value is how Python writes it."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    FLOORDIV = "//"


class Symbol:
    """A number that is not known yet. It is equal to nothing but itself, and takes part in arithmetic with ints and others."""

    def __add__(self, other: Value) -> Value:
        return Arithmetic(Operator.ADD, self, other)

    def __radd__(self, other: int) -> Value:
        return Arithmetic(Operator.ADD, other, self)

    def __sub__(self, other: Value) -> Value:
        return Arithmetic(Operator.SUB, self, other)

    def __rsub__(self, other: int) -> Value:
        return Arithmetic(Operator.SUB, other, self)

    def __mul__(self, other: Value) -> Value:
        return Arithmetic(Operator.MUL, self, other)

    def __rmul__(self, other: int) -> Value:
        return Arithmetic(Operator.MUL, other, self)

    def __floordiv__(self, other: Value) -> Value:
        return Arithmetic(Operator.FLOORDIV, self, other)

    def __rfloordiv__(self, other: int) -> Value:
        return Arithmetic(Operator.FLOORDIV, other, self)

    def holes(self) -> Iterator[Hole]:
        """The holes that it depends on."""
        raise NotImplementedError

    def _known(self, *_: object) -> NoReturn:
        raise Fork(next(self.holes()))

    __bool__ = __int__ = __index__ = __float__ = __lt__ = __le__ = __gt__ = __ge__ = _known

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float | Symbol) and other is not self:
            self._known()
        return other is self

    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False)
class Chosen(Symbol):
    """What was chosen for a hole."""

    hole: Hole

    def holes(self) -> Iterator[Hole]:
        yield self.hole


@dataclass(frozen=True, eq=False)
class Trip(Symbol):
    """The iterations of one level of the tile that was chosen for a hole; level 0 is the outermost."""

    hole: Hole
    level: int

    def holes(self) -> Iterator[Hole]:
        yield self.hole


@dataclass(frozen=True, eq=False)
class Arithmetic(Symbol):
    """``a`` and ``b`` combined."""

    op: Operator
    a: Value
    b: Value

    def holes(self) -> Iterator[Hole]:
        for operand in (self.a, self.b):
            if isinstance(operand, Symbol):
                yield from operand.holes()


Value: TypeAlias = int | Symbol


def evaluate(value: Value, choose: Choose) -> Number:
    """The number that a value is: of one row, or of a population."""
    result: Number = evaluate_by(value, choose, lambda x, y: floor(x / y))
    return result


def evaluate_by(value: Value, choose: Callable[[Hole, NDArray[np.int64]], Any], divided: Callable[[Any, Any], Any]) -> Any:
    """A value in numbers of any kind: what ``choose`` gives has ``+``, ``-`` and ``*``, and ``divided`` is their ``//``."""
    match value:
        case Chosen(hole):
            return choose(hole, np.asarray(hole.choices, dtype=np.int64))
        case Trip(hole, level):
            assert hole.table is not None
            return choose(hole, hole.table.trips[:, level])
        case Arithmetic(op, a, b):
            x, y = evaluate_by(a, choose, divided), evaluate_by(b, choose, divided)
            match op:
                case Operator.ADD:
                    return x + y
                case Operator.SUB:
                    return x - y
                case Operator.MUL:
                    return x * y
                case Operator.FLOORDIV:
                    return divided(x, y)
        case int():
            return value
    raise AssertionError(f"{value!r} is no number")


def most(value: Value) -> int:
    """A bound: no choices make the value larger."""
    return _bounds(value)[1]


def least(value: Value) -> int:
    """A bound: no choices make the value smaller."""
    return _bounds(value)[0]


def _bounds(value: Value) -> tuple[int, int]:
    match value:
        case Chosen(hole):
            return min(hole.choices), max(hole.choices)
        case Trip(hole, level):
            assert hole.table is not None
            trips = hole.table.trips[:, level]
            return int(trips.min()), int(trips.max())
        case Arithmetic(op, a, b):
            (a_low, a_high), (b_low, b_high) = _bounds(a), _bounds(b)
            match op:
                case Operator.ADD:
                    return a_low + b_low, a_high + b_high
                case Operator.SUB:
                    return a_low - b_high, a_high - b_low
                case Operator.MUL:
                    corners = [x * y for x in (a_low, a_high) for y in (b_low, b_high)]
                    return min(corners), max(corners)
                case Operator.FLOORDIV:
                    corners = [x // y for x in (a_low, a_high) for y in (b_low, b_high) if y]
                    return min(corners, default=0), max(corners, default=0)
        case int():
            return value, value
    raise ScheduleError(f"{value!r} is no whole number, nor a sample of one")
