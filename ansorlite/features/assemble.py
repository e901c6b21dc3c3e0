"""From facts to features: the same arithmetic for a population and for the slow reference.

Traffic follows the classic argument (Halide, tiling papers): a cache of ``C`` bytes keeps the working set of the outermost
depth at which the lines touched below fit into it, from one iteration of the loop around it to the next; everything further
out is fetched again on every iteration. A cache has sets: rows a power of two apart fall into few of them, and fit only if
those few have room. Addresses of pages are kept in a cache, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.features.facts import AccessFacts, Flags, Numbers, StatementFacts
from ansorlite.features.names import ACCESSES
from ansorlite.target import Target

#: Sets of the first and of the second cache, as most CPUs have them. The third scatters addresses over its sets.
_SETS: Final = (64, 1024)
_LINE: Final = 64
#: Bytes of a page, and how many of them a core finds without looking for their addresses.
_PAGE: Final = 4096
_PAGES: Final = 64


def assemble(facts: Iterable[StatementFacts], target: Target) -> Numbers:
    """(n, statements, NUM_FEATURES) float64; in memory, each feature of a statement is contiguous."""
    return np.stack([np.stack(_statement(statement, target)) for statement in facts]).transpose(2, 0, 1)


def _log(x: Numbers) -> Numbers:
    return np.asarray(np.log2(1.0 + x))


def _statement(s: StatementFacts, target: Target) -> list[Numbers]:
    """NUM_FEATURES columns (n,)."""
    trips, real = s.trips, s.trips > 1
    vector_trip = _product(s.vector, trips)
    vectors = np.ceil(vector_trip / s.lanes)
    iterations = np.prod(trips, axis=0)
    parallel = _product(s.parallel, trips)
    balance = parallel / (np.ceil(parallel / target.threads) * target.threads)
    straight = s.unrolled | s.vector
    unrolled = _product(s.unrolled, trips) * vectors
    looping = real & ~straight
    # Whether a vectorised loop reduces is left out: its lanes are partial results, and told apart in no machine code.
    reduce = _product(s.reduce & ~s.vector, trips)
    # Reduction loops with no loop other than reductions inside of them.
    innermost = ~looping | s.reduce
    for depth in reversed(range(len(innermost) - 1)):
        innermost[depth] &= innermost[depth + 1]
    inner_reduce = _product(innermost & looping & s.reduce, trips)
    branches = _product(looping, trips)
    ops = [iterations * count for count in (s.operations.cheap, s.operations.mul, s.operations.div, s.operations.math)]
    accumulators = _product(s.unrolled & ~s.reduce, trips) * np.where(s.accumulates, vectors, 0.0)
    loads = [_loads(a, s, vectors) for a in s.accesses]
    by_kind = [np.zeros_like(iterations) for _ in range(3)]
    for access, distinct in zip(s.accesses, loads, strict=True):
        if not access.write:
            for kind in range(3):
                by_kind[kind] += np.where(access.lane_stride == kind, distinct, 0.0)
    scalar, contiguous, strided = by_kind
    caches = ((target.l1, _SETS[0]), (target.l2, _SETS[1]))
    lines = [_lines(a, caches) for a in s.accesses]
    outer = np.ones((len(trips) + 1, len(iterations)))
    for depth, trip in enumerate(trips):
        np.multiply(outer[depth], trip, out=outer[depth + 1])
    fetched = [line.fetched for line in lines]
    total = _sum(fetched)
    room = [_sum([line.held[level] for line in lines]) for level in range(len(caches))]
    traffic = [
        _traffic(fetched, held, outer, capacity)
        for held, capacity in zip((*room, total), (target.l1, target.l2, target.l3), strict=True)
    ]
    sums = [_sum(t) for t in traffic]
    on_pages = [line.pages for line in lines]
    pages = _sum(_traffic(on_pages, _sum(on_pages), outer, _PAGES))
    inner = _innermost(looping & ~s.parallel)
    runs = [_sum([t / _at(line.run, inner) for t, line in zip(level, lines, strict=True)]) for level in traffic[: len(caches)]]
    work = sum(ops)
    columns = [
        _log(iterations), _log(parallel), balance, np.log2(s.lanes), _log(vector_trip), vector_trip / (vectors * s.lanes),
        _log(unrolled), _log(reduce), _log(inner_reduce), _log(branches),
        *map(_log, ops),
        s.in_registers.astype(np.float64), np.full_like(iterations, float(s.accumulates)),
        _log(accumulators), _log(contiguous), _log(scalar), _log(strided),
        _log(total[0]), *map(_log, sums), *(_log(work / np.maximum(t, 1.0)) for t in sums), *map(_log, runs),
        _log(pages),
    ]  # fmt: skip
    for number in range(ACCESSES):
        if number < len(s.accesses):
            access = s.accesses[number]
            columns += [_log(fetched[number][0]), *(_log(t[number]) for t in traffic), access.lane_stride]
            columns += [np.full_like(iterations, float(access.write)), _log(loads[number])]
            columns += [_log(iterations * access.item / np.maximum(fetched[number][0], 1.0))]
        else:
            columns += [np.zeros_like(iterations)] * 8
    return columns


def _sum(parts: list[Numbers]) -> Numbers:
    return sum(parts[1:], parts[0])


def _product(chosen: Flags, trips: Numbers) -> Numbers:
    """(n,) the product of the trips ``chosen``, of which most depths have none."""
    depths = np.flatnonzero(chosen.any(axis=1))
    return np.asarray(np.prod(np.where(chosen[depths], trips[depths], 1.0), axis=0))


def _loads(access: AccessFacts, s: StatementFacts, vectors: Numbers) -> Numbers:
    """Distinct loads (or stores) of the straight-line code around the statement."""
    moved = _product(s.unrolled & access.moves, s.trips)
    along = np.where(access.lane_stride > 0, vectors, 1.0)
    return np.asarray(moved * along)


@dataclass(frozen=True, eq=False)
class _Lines:
    """The cache lines that one access touches below each depth, all ``(D + 1, n)``.

    Attributes:
        fetched: bytes of the lines.
        held: for the first and the second cache: how many bytes of it keeping them takes. Lines that fall into few sets
            take as much as if all sets were as full.
        run: bytes of the longest run of neighbours.
        pages: that they are on.
    """

    fetched: Numbers
    held: tuple[Numbers, ...]
    run: Numbers
    pages: Numbers


def _lines(access: AccessFacts, caches: tuple[tuple[int, int], ...]) -> _Lines:
    """``caches``: the bytes and the sets of each."""
    # Not of the shape of a width: that of an index that nothing moves is one number for all rows.
    dims = [dim for dim in zip(reversed(access.widths), reversed(access.extents), strict=True) if (dim[1] > 1).any()]
    elements = run = np.ones((access.moves.shape[0] + 1, access.moves.shape[1]))
    full: Flags | None = None
    stride = np.full(access.moves.shape[1], access.item, dtype=np.int64)
    pages = np.ones_like(run)
    places: list[Numbers | None] = [None] * len(caches)
    for position, (width, extent) in enumerate(dims):
        # A dimension is part of a run of neighbours where all further in are walked whole.
        elements = elements * width if position else width
        if full is None:
            run = elements
        else:
            run = np.where(full, run * width, run)
            rows = np.where(full, 1.0, width)
            pages = pages * np.maximum(np.minimum(stride / _PAGE, 1.0) * rows, 1.0)
            for level, (_, sets) in enumerate(caches):
                # Rows whose distance is a multiple of a large power of two begin in few sets.
                apart = np.maximum(sets * _LINE // (stride & -stride), 1)
                begin = np.minimum(rows, apart)
                places[level] = begin if (before := places[level]) is None else before * begin
        if position < len(dims) - 1:
            full = width >= extent if full is None else full & (width >= extent)
            stride = stride * extent.astype(np.int64)
    row = run * (access.item / _LINE)
    np.ceil(row, out=row)
    if full is None:
        fetched = row * _LINE
        return _Lines(fetched, (fetched,) * len(caches), fetched, np.maximum(fetched / _PAGE, 1.0))
    lines = row * elements
    lines /= run
    fetched = lines * _LINE
    held = []
    for (size, sets), begin in zip(caches, places, strict=True):
        assert begin is not None
        ways = size // (sets * _LINE)
        used = lines / np.minimum(row * begin, sets)
        used -= 1.0
        used *= size / (ways - 1)
        held.append(np.maximum(used, fetched, out=used))
    row *= _LINE
    return _Lines(fetched, tuple(held), row, pages * np.maximum(row / _PAGE, 1.0))


def _innermost(looping: Flags) -> NDArray[np.int64]:
    """(n,) the depth of the innermost of the loops that are ``looping``; 0 where there are none."""
    last = len(looping) - 1 - np.argmax(looping[::-1], axis=0) if len(looping) else np.zeros(looping.shape[1], np.int64)
    return np.where(looping.any(axis=0), last, 0)


def _at(values: Numbers, depth: NDArray[np.int64]) -> Numbers:
    """``values[depth[i], i]`` for every ``i``."""
    return np.asarray(values[depth, np.arange(values.shape[1])])


def _traffic(fetched: list[Numbers], held: Numbers, outer: Numbers, capacity: int) -> list[Numbers]:
    """For each access the bytes fetched into a cache of ``capacity`` bytes."""
    fits = held <= capacity
    fits[-1] = True
    # One run of the loop around what fits fetches all of its lines once: neighbouring iterations find what they share.
    depth = np.maximum(np.argmax(fits, axis=0) - 1, 0)
    places = depth * held.shape[1] + np.arange(held.shape[1])
    times = outer.ravel()[places]
    return [access.ravel()[places] * times for access in fetched]
