"""From facts to features: the same arithmetic for a population and for the slow reference.

Traffic follows the classic argument (Halide, tiling papers): a cache of ``C`` bytes keeps the working set of the outermost
depth at which the lines touched below fit into it; everything further out is fetched again on every iteration.
"""

from __future__ import annotations

import numpy as np

from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.features.names import ACCESSES, NUM_FEATURES
from ansorlite.target import Target


def assemble(facts: tuple[StatementFacts, ...], target: Target) -> Numbers:
    """(n, statements, NUM_FEATURES) float64."""
    n = len(facts[0].lanes)
    result = np.zeros((n, len(facts), NUM_FEATURES))
    for position, statement in enumerate(facts):
        result[:, position, :] = _statement(statement, target).T
    return result


def _log(x: Numbers) -> Numbers:
    return np.asarray(np.log2(1.0 + x))


def _statement(s: StatementFacts, target: Target) -> Numbers:
    """(NUM_FEATURES, n)."""
    trips, real = s.trips, s.trips > 1
    vector_trip = np.prod(np.where(s.vector, trips, 1.0), axis=0)
    vectors = np.ceil(vector_trip / s.lanes)
    iterations = np.prod(trips, axis=0)
    parallel = np.prod(np.where(s.parallel, trips, 1.0), axis=0)
    balance = parallel / (np.ceil(parallel / target.threads) * target.threads)
    straight = s.unrolled | s.vector
    unrolled = np.prod(np.where(s.unrolled, trips, 1.0), axis=0) * vectors
    looping = real & ~straight
    # Whether a vectorised loop reduces is left out: its lanes are partial results, and told apart in no machine code.
    reduce = np.prod(np.where(s.reduce & ~s.vector, trips, 1.0), axis=0)
    # Reduction loops with no loop other than reductions inside of them.
    innermost = np.flip(np.logical_and.accumulate(np.flip(~looping | s.reduce, axis=0), axis=0), axis=0)
    inner_reduce = np.prod(np.where(innermost & looping & s.reduce, trips, 1.0), axis=0)
    branches = np.prod(np.where(looping, trips, 1.0), axis=0)
    ops = [iterations * count for count in (s.operations.cheap, s.operations.mul, s.operations.div, s.operations.math)]
    accumulators = np.prod(np.where(s.unrolled & ~s.reduce, trips, 1.0), axis=0) * np.where(s.accumulates, vectors, 0.0)
    loads = [_loads(a, s, vectors) for a in s.accesses]
    by_kind = [np.zeros_like(iterations) for _ in range(3)]
    for access, distinct in zip(s.accesses, loads, strict=True):
        if not access.write:
            for kind in range(3):
                by_kind[kind] += np.where(access.lane_stride == kind, distinct, 0.0)
    scalar, contiguous, strided = by_kind
    lines = [_lines(a) for a in s.accesses]
    total = np.sum(lines, axis=0) if lines else np.zeros_like(trips)
    outer = np.ones((len(trips) + 1, len(iterations)))
    np.cumprod(trips, axis=0, out=outer[1:])
    traffic = [_traffic(lines, total, outer, capacity) for capacity in (target.l1, target.l2, target.l3)]
    sums = [np.sum(t, axis=0) if t else np.zeros_like(iterations) for t in traffic]
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
    return np.stack(columns)


def _loads(access: AccessFacts, s: StatementFacts, vectors: Numbers) -> Numbers:
    """Distinct loads (or stores) of the straight-line code around the statement."""
    moved = np.prod(np.where(s.unrolled & access.moves, s.trips, 1.0), axis=0)
    along = np.where(access.lane_stride > 0, vectors, 1.0)
    return np.asarray(moved * along)


def _lines(access: AccessFacts) -> Numbers:
    """(D + 1, n) bytes of the cache lines touched below each depth."""
    # Not of the shape of a width: that of an index that nothing moves is one number for all rows.
    elements = np.ones((access.moves.shape[0] + 1, access.moves.shape[1]))
    run, full = elements, np.ones_like(elements, dtype=bool)
    for width, extent in zip(reversed(access.widths), reversed(access.extents), strict=True):
        elements = elements * width
        run = np.where(full, run * width, run)
        full = full & (width >= extent)
    return np.asarray(elements / run * (np.ceil(run * (access.item / 64.0)) * 64.0))


def _traffic(lines: list[Numbers], total: Numbers, outer: Numbers, capacity: int) -> list[Numbers]:
    """For each access the bytes fetched into a cache of ``capacity`` bytes."""
    fits = total <= capacity
    fits[-1] = True
    depth = np.argmax(fits, axis=0)
    column = np.arange(total.shape[1])
    return [access[depth, column] * outer[depth, column] for access in lines]
