"""Tables of multi-level tiles: what a split's hole indexes, so that the hot path gathers and never divides.

A tile of an axis of extent ``N`` in ``parts`` levels is a chain of spans ``N = s0 >= s1 >= ... >= s_parts = 1``: the loop
of level ``l`` walks a span of ``s_l`` in steps of ``s_{l+1}``, ``ceil(s_l / s_{l+1})`` times. Where the step does not
divide the span the last step of a space axis is *shifted inwards* (it recomputes an overlap and needs no guard), and
the last step of a reduce axis is *cut* short. At most one level of a chain is imperfect, so the waste stays small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

#: The innermost step count of a chain is at most this (Ansor: max_innermost_split_factor = 64).
MAX_INNER = 64
#: A chain may run over this share of the extent in vain.
MAX_WASTE = 0.34
#: Tables are cut to this many rows, the least wasteful first.
MAX_ROWS = 3000
#: Inner spans that are worth trying though they do not divide the extent.
_NICE = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
_NEIGHBOURS = 12
#: Of so many rows at once the distances from all others are in memory.
_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class TileTable:
    """Every tile of one axis that the search may choose.

    Attributes:
        extent: N.
        spans: (rows, parts + 1) int64, the chains.
        trips: (rows, parts) int64, iterations of each level's loop.
    """

    extent: int
    spans: np.ndarray
    trips: np.ndarray

    @cached_property
    def neighbours(self) -> np.ndarray:
        """(rows, k) int64, rows that differ little, itself excluded; k may be 0."""
        return _neighbours(self.spans)

    @cached_property
    def perfect(self) -> bool:
        """Whether every step of every tile divides its span."""
        return bool((self.spans[:, :-1] % self.spans[:, 1:] == 0).all())

    def with_innermost(self, trips: Collection[int]) -> TileTable:
        """The tiles whose innermost loop has one of these trips."""
        chosen = np.isin(self.trips[:, -1], list(trips))
        return TileTable(self.extent, self.spans[chosen], self.trips[chosen])

    @property
    def rows(self) -> int:
        """How many tiles there are."""
        return len(self.spans)

    @property
    def parts(self) -> int:
        """How many levels each has."""
        return int(self.trips.shape[1])


@cache
def _divisors(n: int) -> list[int]:
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


@cache
def _perfect(span: int, parts: int) -> tuple[tuple[int, ...], ...]:
    """All chains ``span >= ... >= 1`` of ``parts`` levels in which every step divides its span."""
    if parts == 1:
        return ((span, 1),)
    return tuple((span, *rest) for step in _divisors(span) for rest in _perfect(step, parts - 1))


def _imperfect(extent: int, parts: int) -> list[tuple[int, ...]]:
    """Chains in which exactly one level is imperfect; the levels outside of it do not split."""
    chains = [
        (extent,) * (level + 1) + rest
        for level in range(parts - 1)
        for step in _uneven(extent)
        for rest in _perfect(step, parts - 1 - level)
    ]
    return sorted(set(chains))


@cache
def _uneven(extent: int) -> frozenset[int]:
    """Steps of an imperfect level."""
    return frozenset(step for span in _NICE if extent % span for step in _doubled(span, extent) if _pays(step, extent))


def _doubled(span: int, extent: int) -> Iterator[int]:
    while span < extent:
        yield span
        span *= 2


def _pays(step: int, extent: int) -> bool:
    return bool(extent % step) and -(-extent // step) * step / extent - 1 <= MAX_WASTE


@cache
def _ways(span: int, parts: int) -> int:
    """How many perfect chains there are."""
    return 1 if parts == 1 else sum(_ways(step, parts - 1) for step in _divisors(span))


def tile_count(extent: int, parts: int, perfect: bool = False) -> int:
    """How many tiles of an axis there are to choose a table from: these are all made first."""
    uneven = () if perfect else _uneven(extent)
    return _ways(extent, parts) + sum(_ways(step, left) for left in range(1, parts) for step in uneven)


def _waste(chain: tuple[int, ...]) -> float:
    total = 1.0
    for span, step in pairwise(chain):
        total *= -(-span // step) * step / span
    return total - 1


@cache
def tile_table(
    extent: int, parts: int, perfect: bool = False, max_inner: int = MAX_INNER, most: tuple[int | None, ...] | None = None
) -> TileTable:
    """The tiles of an axis of ``extent`` in ``parts`` levels.

    Args:
        perfect: leave out chains whose steps do not divide their spans.
        max_inner: largest innermost trip count.
        most: by level, largest trip count; where all tiles are beyond that, they stay.
    """
    chains = list(_perfect(extent, parts))
    if not perfect and parts > 1:
        chains += _imperfect(extent, parts)
    # An extent without a small divisor must keep its one chain.
    fitting = [c for c in chains if c[-2] <= max_inner] or chains
    if most is not None:
        fitting = [c for c in fitting if _within(c, most)] or fitting
    if len(fitting) > MAX_ROWS:
        # Thin evenly among equals: order by waste, then take a stable stride through each class of waste.
        fitting.sort(key=lambda c: (round(_waste(c), 2), c))
        exact = [c for c in fitting if _waste(c) == 0.0]
        rest = [c for c in fitting if _waste(c) != 0.0]
        fitting = _thinned(exact, MAX_ROWS * 2 // 3) + _thinned(rest, MAX_ROWS // 3)
    spans = np.array(sorted(fitting), dtype=np.int64)
    trips = -(-spans[:, :-1] // spans[:, 1:])
    return TileTable(extent, spans, trips)


def _within(chain: tuple[int, ...], most: tuple[int | None, ...]) -> bool:
    """Whether no level has more iterations than it may."""
    trips = (-(-span // step) for span, step in pairwise(chain))
    return all(limit is None or trip <= limit for trip, limit in zip(trips, most, strict=True))


def _thinned(chains: list[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    if not chains:
        return []
    return [chains[i] for i in np.unique(np.linspace(0, len(chains) - 1, min(count, len(chains))).astype(int))]


def _neighbours(spans: np.ndarray) -> np.ndarray:
    """For each row the nearest others by the logarithms of their spans."""
    count = min(_NEIGHBOURS, len(spans) - 1)
    if count <= 0:
        return np.zeros((len(spans), 0), dtype=np.int64)
    points = np.log2(spans.astype(np.float32))
    lengths = (points**2).sum(axis=1)
    found = np.empty((len(spans), count), np.int64)
    for start in range(0, len(spans), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        apart = lengths[part, None] + lengths - 2 * points[part] @ points.T
        # Of rows that are equally far the first ones, whatever the order in which floats are added.
        keys = np.rint(apart * 1024).astype(np.int64) * len(spans) + np.arange(len(spans))
        keys[np.arange(len(keys)), np.arange(start, start + len(keys))] = np.iinfo(np.int64).max
        nearest = np.partition(keys, count - 1, axis=1)[:, :count]
        found[part] = np.sort(nearest, axis=1) % len(spans)
    return found
