"""A sub-space that can be measured whole: a few values of every hole of a sketch, and all programs that they make."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.evolution import EvolutionSettings, evolve, keys
from ansorlite.schedule.samples import Hole
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from benchmarks.search.table import HoleKind, TableHole

Rows = NDArray[np.int64]

#: The most values of one hole.
MOST_VALUES: Final = 8
#: Of the values of a hole, how many random ones come after a favourite: among favourites alone, any program is a good one.
_AT_RANDOM: Final = 2
#: A tile's values are so many steps away, at most.
_STEPS: Final = 3
#: So many rows a program, at most.
_ALIKE: Final = 8
_SETTINGS: Final = EvolutionSettings(population=1024, generations=3, keep=64)


@dataclass(frozen=True)
class Grid:
    """All programs of some values.

    Attributes:
        values: of each hole of the sketch, the positions of the values that it keeps, ascending.
        rows: ``(n, holes)``: rows of the sketch's whole space.
        keys: of each row, equal for equal programs.
    """

    sketch: Sketch
    values: tuple[tuple[int, ...], ...]
    rows: Rows
    keys: tuple[bytes, ...]

    def small_rows(self) -> Rows:
        """``(n, holes)``: the rows as positions in :attr:`values`."""
        return np.stack([np.searchsorted(kept, self.rows[:, at]) for at, kept in enumerate(self.values)], axis=1)


def grid(sketch: Sketch, score: Callable[[Rows], NDArray[np.float64]], found: Rows, limit: int, rng: np.random.Generator) -> Grid:
    """A grid of at most ``limit`` programs around good ones.

    Args:
        score: of rows of the sketch's space; higher is better. What it likes best gives values, besides random ones.
        found: ``(m, holes)``: the best rows of a search, the fastest first.
    """
    space = TileSpace(sketch)
    liked, _ = evolve(space, score, found, _SETTINGS, rng)
    wishes = [_wishes(hole, [*found[:16, at], *liked[:, at]], rng) for at, hole in enumerate(sketch.holes)]
    counts = [1] * len(wishes)
    best = _programs(space, [wish[:1] for wish in wishes])
    closed: set[int] = set()
    while len(closed) < len(wishes):
        # Tiles get three values for two of another hole.
        share = {
            at: counts[at] / (1.5 if sketch.holes[at].table is not None else 1.0) for at in range(len(counts)) if at not in closed
        }
        at = min(share, key=lambda each: share[each])
        if counts[at] == min(len(wishes[at]), MOST_VALUES):
            closed.add(at)
            continue
        counts[at] += 1
        rows = _programs(space, [wish[:count] for wish, count in zip(wishes, counts, strict=True)])
        if len(set(keys(space, rows))) > limit or len(rows) > _ALIKE * limit:
            counts[at] -= 1
            closed.add(at)
        else:
            best = rows
    kept = tuple(tuple(sorted(wish[:count])) for wish, count in zip(wishes, counts, strict=True))
    return Grid(sketch, kept, best, tuple(keys(space, best)))


def _wishes(hole: Hole, liked: Sequence[int], rng: np.random.Generator) -> list[int]:
    """The values of a hole, those first that a grid should have."""
    favourites = list(dict.fromkeys(int(value) for value in liked))
    others = [value for value in rng.permutation(hole.size).tolist() if value not in set(favourites)]
    wishes: list[int] = []
    while favourites or others:
        wishes += [*favourites[:1], *others[:_AT_RANDOM]]
        del favourites[:1], others[:_AT_RANDOM]
    return wishes


def _programs(space: TileSpace, values: Sequence[Sequence[int]]) -> Rows:
    """The valid rows of all combinations."""
    rows = np.array(list(itertools.product(*values)), np.int64).reshape(-1, len(values))
    return rows[space.valid(rows)]


def table_hole(hole: Hole, kept: Sequence[int]) -> TableHole:
    """What a table says of a hole of which it has the values ``kept``."""
    if hole.table is not None:
        spans = hole.table.spans[np.array(kept, np.int64), 1:-1]
        values = tuple(tuple(map(float, span)) for span in spans)
        far = np.abs(np.log2(spans)[:, None, :] - np.log2(spans)[None, :, :]).sum(axis=2) + np.diag([np.inf] * len(kept))
        steps = np.argsort(far, axis=1, kind="stable")[:, : max(0, min(_STEPS, len(kept) - 1))]
        return TableHole(hole.name, HoleKind.TILE, values, tuple(tuple(map(int, each)) for each in steps))
    numbers = tuple((float(hole.choices[value]),) for value in kept)
    near = tuple(tuple(other for other in (at - 1, at + 1) if 0 <= other < len(kept)) for at in range(len(kept)))
    return TableHole(hole.name, HoleKind.ORDINAL, numbers, near)
