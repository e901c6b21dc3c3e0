"""The space of one sketch: every row of ints that fills its holes."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansorlite.errors import ScheduleError
from ansorlite.schedule.samples import Hole
from ansorlite.sketch.directions import Directions
from ansorlite.sketch.sketch import Sketch

Rows = NDArray[np.int64]

#: How much likelier a tile is to be mutated than any other decision (Ansor: 0.90 of all mutations are tiles).
_TILE_WEIGHT = 4.0
#: The share of tile mutations that jump anywhere in the table instead of to a neighbour.
_JUMP = 0.2
#: So many rows are drawn at once, at least, in the place of invalid ones, and so many times: then a space counts as one without
#: valid rows.
_REDRAWN = 1024
_REDRAWS = 8
#: Where the holes that decide whether a row is valid have so many combinations at most, all valid ones are found once.
_SMALL = 1 << 17


class TileSpace:
    """A :class:`~ansorlite.sketch.space.Space` over the holes of ``sketch``.

    The fold projects what does not go together; the few choices that it cannot project, and what is beyond a limit of the
    machine, make a row invalid.
    """

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self.holes = sketch.holes

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(holes,) the number of values of each hole."""
        return np.array([hole.size for hole in self.holes], dtype=np.int64)

    @property
    def order(self) -> tuple[int, ...]:
        """The holes from structure to details: as the steps have them."""
        return tuple(range(len(self.holes)))

    @cached_property
    def directions(self) -> Directions:
        """Of a tile a factor from one level to another, of the other holes one up or one down."""
        return Directions.of([hole.size if hole.table is None else hole.table for hole in self.holes])

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """``n`` valid rows, every hole uniform, or by its weights; where few rows are valid, most are crossed from such.

        Raises:
            ScheduleError: no row is valid, as far as some thousands that were tried tell.
        """
        rows = self._drawn(n, rng)
        wrong = np.flatnonzero(~self.valid(rows))
        if len(wrong) and self._all_valid is not None and len(self._all_valid):
            picks = rng.integers(len(self._all_valid), size=len(wrong))
            rows[wrong[:, None], self.sketch.deciding] = self._all_valid[picks]
            return rows
        found = tried = rows[:0]
        for _ in range(_REDRAWS):
            if len(found) >= len(wrong):
                break
            tried = self._assembled(max(_REDRAWN, 2 * len(wrong)), rng)
            found = np.concatenate([found, tried[self.valid(tried)]])
        if len(wrong) and not len(found):
            raise ScheduleError(self.sketch.why_invalid(tried))
        if len(found) < len(wrong):
            found = self._with_children(found, len(wrong), rng)
        if len(wrong):
            rows[wrong] = found[np.arange(len(wrong)) % len(found)]
        return rows

    @cached_property
    def _all_valid(self) -> Rows | None:
        """All values of the holes that decide with which a row is valid, whatever the others are; ``None``: they are many."""
        holes = self.sketch.deciding
        sizes = self.sizes[list(holes)]
        if not holes or sizes.prod(dtype=np.float64) > _SMALL:
            return None
        rows = np.zeros((sizes.prod(), len(self.holes)), np.int64)
        rows[:, holes] = np.stack(np.unravel_index(np.arange(len(rows)), tuple(sizes)), axis=1)
        return rows[self.valid(rows)][:, holes]

    def _with_children(self, found: Rows, n: int, rng: np.random.Generator) -> Rows:
        """Valid rows, and others that take each hole from one of them, up to ``n`` or as many as some attempts give."""
        parents = found
        for _ in range(_REDRAWS):
            a, b = (parents[rng.integers(len(parents), size=2 * n)] for _ in range(2))
            children = np.unique(self.crossover(a, b, rng), axis=0)
            before = len(found)
            found = np.unique(np.concatenate([found, children[self.valid(children)]]), axis=0)
            if len(found) >= n or len(found) == before:
                break
        return rng.permutation(found)[:n]

    def _assembled(self, n: int, rng: np.random.Generator) -> Rows:
        """``n`` rows, valid or not, of nests each of which is within the limits of the machine, if one was drawn that is."""
        rows = self._drawn(n, rng)
        for part in self.sketch.parts:
            good = rows[part.run(rows).all(axis=0)]
            if len(good) and part.holes:
                # Of a few good ones more are made by crossing them.
                a, b = (good[rng.integers(len(good), size=n)] for _ in range(2))
                children = self.crossover(a, b, rng)
                good = np.concatenate([good, children[part.run(children).all(axis=0)]])
                rows[:, part.holes] = good[rng.integers(len(good), size=n)][:, part.holes]
        return rows

    def _drawn(self, n: int, rng: np.random.Generator) -> Rows:
        """``n`` rows, valid or not."""
        rows = rng.integers(self.sizes, size=(n, len(self.holes)), dtype=np.int64)
        for column, hole in enumerate(self.holes):
            if hole.weights is not None:
                rows[:, column] = rng.choice(hole.size, size=n, p=hole.weights)
        return rows

    def canonical(self, rows: Rows) -> Rows:
        """(n, k): equal rows of the result if and only if the programs are equal."""
        return self.sketch.canonical(rows)

    def valid(self, rows: Rows) -> NDArray[np.bool_]:
        """(n,): whether the choices of each row go together, and are within the limits of the machine."""
        return self.sketch.valid(rows)

    def neighbours(self, row: Rows) -> Rows:
        """The valid rows that differ from ``row`` in one hole, by one small step."""
        found = []
        for column, hole in enumerate(self.holes):
            for value in _near(hole, int(row[column])):
                near = row.copy()
                near[column] = value
                found.append(near)
        rows = np.array(found, dtype=np.int64).reshape(-1, len(self.holes))
        return rows[self.valid(rows)]

    def mutate(self, rows: Rows, rng: np.random.Generator) -> Rows:
        """Each row with one hole changed; tiles are likelier than the rest. A row that cannot change stays."""
        result = rows.copy()
        open_ = self.sizes > 1
        if not open_.any():
            return result
        weights = np.where(open_, [_TILE_WEIGHT if hole.table is not None else 1.0 for hole in self.holes], 0.0)
        picks = rng.choice(len(self.holes), size=len(rows), p=weights / weights.sum())
        jumps = rng.random(len(rows)) < _JUMP
        draws = rng.random(len(rows))
        old, size = rows[np.arange(len(rows)), picks], self.sizes[picks]
        other = (old + 1 + (draws * (size - 1)).astype(np.int64)) % size
        near, begins, counts = self._steps
        steps = np.flatnonzero((counts[picks] > 0) & ~jumps)
        count = counts[picks[steps]]
        other[steps] = near[begins[picks[steps]] + old[steps] * count + (draws[steps] * count).astype(np.int64)]
        result[np.arange(len(rows)), picks] = other
        return result

    @cached_property
    def _steps(self) -> tuple[Rows, Rows, Rows]:
        """The neighbours of every tile of all tables in one list; for each hole where its own begin, and how many a tile has."""
        tables = [hole.table.neighbours if hole.table is not None else np.zeros((0, 0), np.int64) for hole in self.holes]
        ends = np.cumsum([table.size for table in tables])
        return (
            np.concatenate([table.ravel() for table in tables]),
            ends - [table.size for table in tables],
            np.array([table.shape[1] for table in tables]),
        )

    def crossover(self, a: Rows, b: Rows, rng: np.random.Generator) -> Rows:
        """Rows that take each hole from the row of ``a`` or of ``b``, evenly."""
        return np.where(rng.random(a.shape) < 0.5, a, b)

    def embed(self, rows: Rows) -> NDArray[np.float64]:
        """(n, d): log2 of the spans of tiles, log2(1 + value) of the other choices."""
        columns = []
        for column, hole in enumerate(self.holes):
            if hole.table is not None:
                columns.append(np.log2(hole.table.spans[rows[:, column], 1:-1].astype(np.float64)))
            else:
                columns.append(np.log2(1.0 + np.asarray(hole.choices, dtype=np.float64)[rows[:, column]])[:, None])
        return np.concatenate([c for c in columns if c.shape[1]] or [np.zeros((len(rows), 1))], axis=1)

    def complete(self, prefixes: Rows, rng: np.random.Generator) -> Rows:
        """Rows that begin with the columns of ``prefixes``; the rest is random."""
        rows = self.sample(len(prefixes), rng)
        rows[:, : prefixes.shape[1]] = prefixes
        return rows


def _near(hole: Hole, value: int) -> list[int]:
    if hole.table is not None:
        return [int(v) for v in hole.table.neighbours[value]]
    return [v for v in (value - 1, value + 1) if 0 <= v < hole.size]
