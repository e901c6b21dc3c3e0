"""Tables of multi-level tiles: what a split's hole indexes, so that the hot path gathers and never divides.

A tile of an axis of extent ``N`` in ``parts`` levels is a chain of spans ``N = s0 >= s1 >= ... >= s_parts = 1``: the loop
of level ``l`` walks a span of ``s_l`` in steps of ``s_{l+1}``, ``ceil(s_l / s_{l+1})`` times. Where the step does not
divide the span the last step of a space axis is *shifted inwards* (it recomputes an overlap and needs no guard), and
the last step of a reduce axis is *cut* short. At most one level of a chain is imperfect, so the waste stays small.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from typing import TypeAlias

import numpy as np

#: By level, the most iterations of a loop; ``None``: any number.
_Limits: TypeAlias = tuple[int | None, ...]

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


@dataclass(frozen=True, eq=False)
class _Chains:
    """The chains behind a span, in sorted order: counted, and made one by one, as some extents have many millions.

    Attributes:
        count: how many there are.
        steps: their next spans, ascending.
        after: the chains behind each of these.
        ends: how many chains have gone by where those of each step end.
    """

    count: int
    steps: tuple[int, ...]
    after: tuple[_Chains, ...]
    ends: tuple[int, ...]

    @staticmethod
    def of(choices: Iterable[tuple[int, _Chains]]) -> _Chains:
        """The chains of all steps that any chains begin with."""
        found = [(step, rest) for step, rest in choices if rest.count]
        ends = tuple(accumulate(rest.count for _, rest in found))
        return _Chains(ends[-1] if ends else 0, tuple(step for step, _ in found), tuple(rest for _, rest in found), ends)

    def at(self, position: int) -> tuple[int, ...]:
        """The chain at a position in the order."""
        chain, here = [], self
        while here.steps:
            number = bisect_right(here.ends, position)
            position -= here.ends[number - 1] if number else 0
            chain.append(here.steps[number])
            here = here.after[number]
        return tuple(chain)


_END = _Chains(1, (), (), ())
_NONE = _Chains.of(())


@cache
def _perfect(span: int, limits: _Limits) -> _Chains:
    """The chains in which every step divides its span, of a level for each limit."""
    if len(limits) == 1:
        return _Chains.of([(1, _END)] if _allows(limits[0], span) else [])
    steps = (step for step in _divisors(span) if _allows(limits[0], span // step))
    return _Chains.of((step, _perfect(step, limits[1:])) for step in steps)


def _imperfect(extent: int, steps: Sequence[int], limits: _Limits) -> _Chains:
    """The chains in which exactly one level is imperfect, with one of these steps; the levels outside of it do not split."""
    if len(limits) == 1 or not _allows(limits[0], 1):
        return _NONE
    uneven = [(step, _perfect(step, limits[1:])) for step in steps if _allows(limits[0], -(-extent // step))]
    return _Chains.of([*uneven, (extent, _imperfect(extent, steps, limits[1:]))])


def _allows(limit: int | None, trip: int) -> bool:
    return limit is None or trip <= limit


def _uneven(extent: int) -> list[tuple[int, ...]]:
    """Steps of an imperfect level: classes that waste the same, the least wasteful first."""
    steps = {step for span in _NICE if extent % span for step in _doubled(span, extent)}
    classes: dict[float, list[int]] = {}
    for step in sorted(steps):
        waste = -(-extent // step) * step / extent - 1
        if extent % step and waste <= MAX_WASTE:
            classes.setdefault(round(waste, 2), []).append(step)
    return [tuple(classes[waste]) for waste in sorted(classes)]


def _doubled(span: int, extent: int) -> Iterator[int]:
    while span < extent:
        yield span
        span *= 2


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
    classes = [] if perfect else _uneven(extent)

    def within(limits: _Limits) -> tuple[_Chains, list[_Chains]]:
        return _perfect(extent, limits), [_imperfect(extent, steps, limits) for steps in classes]

    free: _Limits = (None,) * parts
    short = (*free[1:], max_inner)
    # An extent without a small divisor must keep its one chain.
    wanted = [short, free]
    if most is not None:
        wanted = [_least(most, short), short, free] if _any(within(short)) else [most, free]
    exact, rest = next(found for found in map(within, wanted) if _any(found))
    # Thin evenly among equals: a stable stride through those that waste nothing, and one through all others by their waste.
    whole = exact.count + sum(each.count for each in rest) <= MAX_ROWS
    chains = _taken([exact], exact.count if whole else MAX_ROWS * 2 // 3)
    chains += _taken(rest, MAX_ROWS if whole else MAX_ROWS // 3)
    spans = np.array(sorted((extent, *chain) for chain in chains), dtype=np.int64)
    trips = -(-spans[:, :-1] // spans[:, 1:])
    return TileTable(extent, spans, trips)


def _any(found: tuple[_Chains, list[_Chains]]) -> bool:
    exact, rest = found
    return exact.count > 0 or any(each.count for each in rest)


def _least(a: _Limits, b: _Limits) -> _Limits:
    return tuple(y if x is None else x if y is None else min(x, y) for x, y in zip(a, b, strict=True))


def _taken(classes: Sequence[_Chains], most: int) -> list[tuple[int, ...]]:
    """So many of all chains of these classes at most, evenly."""
    ends = list(accumulate(each.count for each in classes))
    if not ends or not ends[-1]:
        return []
    found = []
    for position in np.unique(np.linspace(0, ends[-1] - 1, min(most, ends[-1])).astype(int)).tolist():
        number = bisect_right(ends, position)
        found.append(classes[number].at(position - (ends[number - 1] if number else 0)))
    return found


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
