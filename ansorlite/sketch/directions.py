"""Directions in a space of rows: "the same move again", and "back"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.schedule.tiles import TileTable

Ints: TypeAlias = NDArray[np.int64]

#: Factors that tiles are moved by, besides the prime factors of the extent.
_ALWAYS: Final = (2,)
#: Of an extent's prime factors the smallest so many: each makes directions of its own.
_MOST_FACTORS: Final = 3


@dataclass(frozen=True, eq=False)
class Directions:
    """What can be done to a row: each direction changes one hole. One that leads nowhere leaves the row as it is.

    Attributes:
        tables: for each hole ``(values, directions)``: where each direction leads from each value.
        back: for each hole ``(directions,)``: which of its directions undoes each.
    """

    tables: tuple[Ints, ...]
    back: tuple[Ints, ...]

    @staticmethod
    def of(holes: Sequence[int | TileTable]) -> Directions:
        """Of holes with so many ordered values, one up or one down; of tiles, a factor from one level to another."""
        made = [_tile_moves(hole) if isinstance(hole, TileTable) else _steps(hole) for hole in holes]
        return Directions(tuple(table for table, _ in made), tuple(back for _, back in made))

    def __len__(self) -> int:
        return sum(len(back) for back in self.back)

    @cached_property
    def hole(self) -> Ints:
        """``(directions,)``: which hole each changes."""
        return np.repeat(np.arange(len(self.back)), [len(back) for back in self.back])

    @cached_property
    def _first(self) -> Ints:
        """``(holes,)``: the first direction of each hole."""
        counts = np.array([len(back) for back in self.back], np.int64)
        return np.cumsum(counts) - counts

    def inverse(self, direction: int) -> int:
        """The direction that undoes this one, wherever both lead anywhere."""
        hole = int(self.hole[direction])
        first = int(self._first[hole])
        return first + int(self.back[hole][direction - first])

    def step(self, rows: Ints, directions: Ints) -> Ints:
        """``(n, holes)`` rows, each one step in its direction, ``(n,)``."""
        result = rows.copy()
        for hole, (table, first) in enumerate(zip(self.tables, self._first.tolist(), strict=True)):
            mine = np.flatnonzero(self.hole[directions] == hole)
            result[mine, hole] = table[rows[mine, hole], directions[mine] - first]
        return result

    def around(self, row: Ints) -> Ints:
        """``(directions, holes)``: one step of ``row`` in every direction."""
        return self.step(np.repeat(row[None], len(self), axis=0), np.arange(len(self)))


def _steps(size: int) -> tuple[Ints, Ints]:
    values = np.arange(size)
    return np.stack([np.minimum(values + 1, size - 1), np.maximum(values - 1, 0)], axis=1), np.array([1, 0])


def _tile_moves(table: TileTable) -> tuple[Ints, Ints]:
    """A direction is a pair of levels and a factor: the trips of the one are divided by it, those of the other multiplied."""
    position = {spans.tobytes(): row for row, spans in enumerate(table.spans)}
    columns: list[Ints] = []
    levels: list[int] = []
    for factor in _factors(table.extent):
        for outer in range(table.parts):
            for inner in range(outer + 1, table.parts):
                # The spans between the two levels grow by the factor that leaves the outer one, or shrink by it.
                grown = table.spans.copy()
                grown[:, outer + 1 : inner + 1] *= factor
                there = np.array([position.get(spans.tobytes(), -1) for spans in grown], np.int64)
                moved = np.flatnonzero(there >= 0)
                inward, outward = np.arange(table.rows), np.arange(table.rows)
                inward[moved], outward[there[moved]] = there[moved], moved
                columns += [inward, outward]
                levels += [len(levels) + 1, len(levels)]
    empty = np.zeros((table.rows, 0), np.int64)
    return np.stack(columns, axis=1) if columns else empty, np.array(levels, np.int64)


def _factors(extent: int) -> list[int]:
    primes, rest, candidate = [], extent, 2
    while rest > 1 and candidate * candidate <= rest:
        if rest % candidate == 0:
            primes.append(candidate)
            while rest % candidate == 0:
                rest //= candidate
        candidate += 1
    primes += [rest] if rest > 1 else []
    return sorted({*_ALWAYS, *primes[:_MOST_FACTORS]})
