"""A table as a strategy sees a task: spaces of rows, and what is known of their programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.features.loop_tree import LoopTree
from ansorlite.features.programs import Programs
from ansorlite.platforms.table import platform_of
from ansorlite.search.protocol import SearchProblem
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.directions import Directions
from ansorlite.sketch.sketch import Sketch
from benchmarks.search.entries import sketches_of, task_of
from benchmarks.search.table import HoleKind, Kind, Table, TableError, TableSketch

Rows: TypeAlias = NDArray[np.int64]

#: As in the space of a sketch: how much likelier a tile is to be mutated than another hole, and how often it jumps anywhere.
_TILE_WEIGHT: Final = 4.0
_JUMP: Final = 0.2


class TableSpace:
    """The rows of one sketch of a grid or of a foreign table: a :class:`~ansorlite.sketch.space.Space`.

    Valid are the rows that the table has: in a foreign one not all combinations are, and what the author excluded is no program.
    """

    def __init__(self, table: Table, position: int) -> None:
        chosen = np.flatnonzero(table.sketch == position)
        self.sketch: TableSketch = table.meta.sketches[position]
        #: Positions in the table, and the rows there, ordered by code.
        self._codes, first = np.unique(self._code(self._rows_of(table, chosen)), return_index=True)
        self._positions = chosen[first]
        self._rows = self._rows_of(table, self._positions)
        _, self._programs = np.unique(table.key[self._positions], return_inverse=True)

    def _rows_of(self, table: Table, positions: Rows) -> Rows:
        return table.row[positions, : len(self.sketch.holes)].astype(np.int64)

    @cached_property
    def sizes(self) -> Rows:
        """``(holes,)``: the number of values of each hole."""
        return np.array([len(hole.values) for hole in self.sketch.holes], np.int64)

    @property
    def order(self) -> tuple[int, ...]:
        """The holes as the table has them."""
        return tuple(range(len(self.sizes)))

    @cached_property
    def directions(self) -> Directions:
        """One value up or down in every hole: what else tiles of a table are is not known."""
        return Directions.of(self.sizes.tolist())

    def _code(self, rows: Rows) -> Rows:
        """``(n,)``: one number for each row, in mixed radix."""
        code = np.zeros(len(rows), np.int64)
        for column, size in enumerate(self.sizes):
            code = code * size + rows[:, column]
        return code

    def _found(self, rows: Rows) -> tuple[Rows, NDArray[np.bool_]]:
        """Which of the known rows these are, and whether they are known at all."""
        codes = self._code(rows)
        at = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return at, self._codes[at] == codes

    def positions(self, rows: Rows) -> Rows:
        """``(n,)``: where in the table valid ``rows`` are."""
        at, known = self._found(rows)
        if not known.all():
            raise ValueError("a row is not in the table")
        return self._positions[at]

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """``n`` rows of the table, each as likely as any other."""
        return self._rows[rng.integers(len(self._rows), size=n)]

    def canonical(self, rows: Rows) -> Rows:
        """``(n, 1)``: the number of the program; of what is not in the table, one of its own, below 0."""
        at, known = self._found(rows)
        return np.where(known, self._programs[at], -1 - self._code(rows))[:, None]

    def valid(self, rows: Rows) -> NDArray[np.bool_]:
        """``(n,)``: whether the table has the row."""
        return self._found(rows)[1]

    def neighbours(self, row: Rows) -> Rows:
        """The rows that differ from ``row`` in one hole, by one step."""
        found = []
        for column, hole in enumerate(self.sketch.holes):
            for value in hole.near[row[column]]:
                near = row.copy()
                near[column] = value
                found.append(near)
        return np.array(found, np.int64).reshape(-1, len(self.sizes))

    def mutate(self, rows: Rows, rng: np.random.Generator) -> Rows:
        """Each row with one hole changed, most often by one step; tiles are likelier than the rest."""
        result = rows.copy()
        tile = np.array([hole.kind is HoleKind.TILE for hole in self.sketch.holes], bool)
        weights = np.where(self.sizes > 1, np.where(tile, _TILE_WEIGHT, 1.0), 0.0)
        if not weights.any():
            return result
        picks = rng.choice(len(self.sizes), size=len(rows), p=weights / weights.sum())
        jumps, draws = rng.random(len(rows)) < _JUMP, rng.random(len(rows))
        at = np.arange(len(rows))
        old, size = rows[at, picks], self.sizes[picks]
        near, counts = self._near
        count = counts[picks, old]
        far = (old + 1 + (draws * (size - 1)).astype(np.int64)) % size
        step = near[picks, old, (draws * np.maximum(count, 1)).astype(np.int64)]
        result[at, picks] = np.where(jumps | (count == 0), far, step)
        return result

    @cached_property
    def _near(self) -> tuple[Rows, Rows]:
        """``(holes, values, steps)``: the values near each, and ``(holes, values)``: how many there are."""
        holes = self.sketch.holes
        most = max(len(near) for hole in holes for near in hole.near)
        near = np.zeros((len(holes), int(self.sizes.max()), max(most, 1)), np.int64)
        counts = np.zeros(near.shape[:2], np.int64)
        for column, hole in enumerate(holes):
            for value, others in enumerate(hole.near):
                near[column, value, : len(others)] = others
                counts[column, value] = len(others)
        return near, counts

    def crossover(self, a: Rows, b: Rows, rng: np.random.Generator) -> Rows:
        """Rows that take each hole from the row of ``a`` or of ``b``, evenly."""
        return np.where(rng.random(a.shape) < 0.5, a, b)

    def embed(self, rows: Rows) -> NDArray[np.float64]:
        """``(n, d)``: the coordinates of the values of all holes, side by side."""
        columns = [hole.coordinates[rows[:, column]] for column, hole in enumerate(self.sketch.holes)]
        return np.concatenate([*columns, np.zeros((len(rows), 0))], axis=1)

    def complete(self, prefixes: Rows, rng: np.random.Generator) -> Rows:
        """Rows that begin with the columns of ``prefixes``; the rest is that of a random row of the table."""
        rows = self.sample(len(prefixes), rng)
        rows[:, : prefixes.shape[1]] = prefixes
        return rows


@dataclass(frozen=True, eq=False)
class TablePrograms:
    """What is known of the programs of some rows: as :class:`ansorlite.features.programs.Programs`."""

    space: TableSpace
    table: Table
    rows: Rows
    shown: TableSketchRows

    @property
    def features(self) -> NDArray[np.float64]:
        """``(n, statements, features)``; where the table has none, the knobs as the features of one statement."""
        if self.table.features is None:
            return self.knobs[:, None, :]
        known = self.table.features[self.space.positions(self.rows), : self.space.sketch.statements]
        return known.astype(np.float64)

    @cached_property
    def knobs(self) -> NDArray[np.float64]:
        """``(n, d)``: see :meth:`TableSpace.embed`."""
        return self.space.embed(self.rows)

    @property
    def tokens(self) -> NDArray[np.float64]:
        """``(n, primitives, len(TOKEN))``: of the sketch that the table names."""
        return self.shown.programs(self.space.positions(self.rows)).tokens

    @property
    def loops(self) -> LoopTree:
        """The loops, of the sketch that the table names."""
        return self.shown.programs(self.space.positions(self.rows)).loops


class TableSketchRows:
    """The programs of one sketch of a table as rows of that sketch: what models see of them that a table does not have."""

    def __init__(self, table: Table, position: int) -> None:
        self._table = table
        self._position = position

    def programs(self, positions: Rows) -> Programs:
        """Those at ``positions`` of the table.

        Raises:
            TableError: they are not ours, or make no rows of the sketch.
        """
        rows = self._rows[np.searchsorted(self._own, positions)]
        return Programs(self._sketch, rows)

    @cached_property
    def _sketch(self) -> Sketch:
        if not self._table.meta.dag:
            raise TableError(f"the programs of the table {self._table.meta.name} are not ours: nothing is known of their loops")
        return sketches_of(self._table, task_of(self._table))[self._position]

    @cached_property
    def _own(self) -> Rows:
        return np.flatnonzero(self._table.sketch == self._position)

    @cached_property
    def _rows(self) -> Rows:
        rows = [self._sketch.row_of(Candidate(self._table.traces[at])) for at in self._own.tolist()]
        if None in rows:
            raise TableError(f"a program of the table {self._table.meta.name} is not of the sketch that it names")
        return np.array(rows, np.int64).reshape(len(rows), -1)


class TableProgramSpace:
    """The programs of one sketch of a table: what a :class:`~ansorlite.search.protocol.SearchProblem` consists of."""

    def __init__(self, table: Table, position: int) -> None:
        self._table = table
        self._position = position
        self.space = TableSpace(table, position)
        self._shown = TableSketchRows(table, position)

    def programs(self, rows: Rows) -> TablePrograms:
        """What is known of the programs of ``rows``."""
        return TablePrograms(self.space, self._table, rows, self._shown)

    def candidate(self, row: tuple[int, ...]) -> Candidate:
        """The program of one row."""
        (position,) = self.space.positions(np.array([row], np.int64))
        return Candidate(self._table.names[position])

    def row_of(self, candidate: Candidate) -> tuple[int, ...] | None:
        """The row of a program; ``None`` if it is none of this sketch's."""
        position = self._table.places.get(candidate.trace)
        if position is None or self._table.sketch[position] != self._position:
            return None
        return tuple(self._table.row[position, : len(self.space.sizes)].tolist())


def problem_of(table: Table) -> SearchProblem:
    """The search that a grid or a foreign table stands for.

    Raises:
        ValueError: a cloud is no space to search.
    """
    if table.meta.kind is Kind.CLOUD:
        raise ValueError("a cloud has programs here and there; strategies are for grids and foreign tables")
    spaces = tuple(TableProgramSpace(table, position) for position in range(len(table.meta.sketches)))
    if not table.meta.dag:
        return SearchProblem(spaces)
    target = task_of(table).target
    return SearchProblem(spaces, platform_of(target).prior(target))
