"""From facts to features: the same arithmetic for a population and for the slow reference.

Traffic follows the classic argument (Halide, tiling papers): a cache of ``C`` bytes keeps the working set of the outermost
depth at which the lines touched below fit into it; everything further out is fetched again on every iteration.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ansorlite.features.facts import AccessFacts, Flags, Numbers, StatementFacts
from ansorlite.features.names import ACCESSES
from ansorlite.target import Target


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
    lines = [_lines(a) for a in s.accesses]
    total = sum(lines[1:], lines[0])
    outer = np.ones((len(trips) + 1, len(iterations)))
    for depth, trip in enumerate(trips):
        np.multiply(outer[depth], trip, out=outer[depth + 1])
    traffic = [_traffic(lines, total, outer, capacity) for capacity in (target.l1, target.l2, target.l3)]
    sums = [sum(t[1:], t[0]) for t in traffic]
    work = sum(ops)
    columns = [
        _log(iterations), _log(parallel), balance, np.log2(s.lanes), _log(vector_trip), vector_trip / (vectors * s.lanes),
        _log(unrolled), _log(reduce), _log(inner_reduce), _log(branches),
        *map(_log, ops),
        s.in_registers.astype(np.float64), np.full_like(iterations, float(s.accumulates)),
        _log(accumulators), _log(contiguous), _log(scalar), _log(strided),
        _log(total[0]), *map(_log, sums), *(_log(work / np.maximum(t, 1.0)) for t in sums),
    ]  # fmt: skip
    for number in range(ACCESSES):
        if number < len(s.accesses):
            access = s.accesses[number]
            columns += [_log(lines[number][0]), *(_log(t[number]) for t in traffic), access.lane_stride]
            columns += [np.full_like(iterations, float(access.write)), _log(loads[number])]
            columns += [_log(iterations * access.item / np.maximum(lines[number][0], 1.0))]
        else:
            columns += [np.zeros_like(iterations)] * 8
    return columns


def _product(chosen: Flags, trips: Numbers) -> Numbers:
    """(n,) the product of the trips ``chosen``, of which most depths have none."""
    depths = np.flatnonzero(chosen.any(axis=1))
    return np.asarray(np.prod(np.where(chosen[depths], trips[depths], 1.0), axis=0))


def _loads(access: AccessFacts, s: StatementFacts, vectors: Numbers) -> Numbers:
    """Distinct loads (or stores) of the straight-line code around the statement."""
    moved = _product(s.unrolled & access.moves, s.trips)
    along = np.where(access.lane_stride > 0, vectors, 1.0)
    return np.asarray(moved * along)


def _lines(access: AccessFacts) -> Numbers:
    """(D + 1, n) bytes of the cache lines touched below each depth."""
    # Not of the shape of a width: that of an index that nothing moves is one number for all rows.
    dims = [dim for dim in zip(reversed(access.widths), reversed(access.extents), strict=True) if (dim[1] > 1).any()]
    elements = run = np.ones((access.moves.shape[0] + 1, access.moves.shape[1]))
    full: Flags | None = None
    for position, (width, extent) in enumerate(dims):
        # A dimension is part of a run of neighbours where all further in are walked whole.
        elements = elements * width if position else width
        run = elements if full is None else np.where(full, run * width, run)
        if position < len(dims) - 1:
            full = width >= extent if full is None else full & (width >= extent)
    lines = run * (access.item / 64.0)
    np.ceil(lines, out=lines)
    lines *= 64.0
    if full is not None:
        lines *= elements
        lines /= run
    return lines


def _traffic(lines: list[Numbers], total: Numbers, outer: Numbers, capacity: int) -> list[Numbers]:
    """For each access the bytes fetched into a cache of ``capacity`` bytes."""
    fits = total <= capacity
    fits[-1] = True
    depth = np.argmax(fits, axis=0)
    places = depth * total.shape[1] + np.arange(total.shape[1])
    times = outer.ravel()[places]
    return [access.ravel()[places] * times for access in lines]
