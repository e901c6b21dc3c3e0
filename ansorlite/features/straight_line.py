"""What straight-line code loads: the unrolled loops around a statement, written out.

Of a reduction's steps that are written out one after another, each may read what the one before has read, as the taps of a
convolution do over rows of outputs. An element is loaded once if it finds a register to wait in; where registers are short,
each step loads for itself (``codegen/crowded.py``).
"""

from __future__ import annotations

from typing import NamedTuple

from ansorlite.columns.arithmetic import (
    both,
    equal,
    every,
    largest,
    maximum,
    minimum,
    modulo,
    negated,
    product,
    select,
    total,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts


class _Sharing(NamedTuple):
    """What steps that are written out read of the same.

    Attributes:
        distinct: the share of their loads that are of different elements.
        waiting: the share that waits for a later step, at most.
    """

    distinct: Number
    waiting: Number


class _Walks(NamedTuple):
    """Iterations of the unrolled loops that move along a dimension; ``None``: there are none.

    Attributes:
        steps, tile: of steps of the reduction, and of the others.
        by_step, by_tile: elements that an iteration of the innermost loop of either moves.
    """

    steps: Number | None
    tile: Number | None
    by_step: Number
    by_tile: Number


def loads_of(s: StatementFacts, looping: Numbers, tile: Number, vectors: Number, registers: int) -> list[Number]:
    """By access: distinct loads (or stores) of the straight-line code around the statement.

    Args:
        looping: by loop: whether it is one in the machine code.
        tile: the unrolled iterations that are no steps of a reduction, lanes aside.
        vectors: of the lanes.
        registers: that hold vectors.
    """
    alone = [_by_steps(access, s, vectors) for access in s.accesses]
    inside = straight(looping)
    found = [_sharing(access, s, inside) if s.accumulates and not access.write else None for access in s.accesses]
    shared = [(n, each) for n, each in zip(alone, found, strict=True) if each is not None]
    if not shared:
        return alone
    along = total(where(equal(access.lane_stride, 1), 1, 0) for access in s.accesses if not access.write)
    held = (tile + along) * vectors + total(n * each.waiting for n, each in shared)
    fits = both(s.in_registers > 0, held <= registers)
    return [n if each is None else where(fits, n * each.distinct, n) for n, each in zip(alone, found, strict=True)]


def straight(looping: Numbers) -> Number:
    """The depth of the straight-line code.

    Args:
        looping: by loop: whether it is one in the machine code.
    """
    result: Number = 0
    for depth, flag in enumerate(looping):
        result = where(flag, depth + 1, result)
    return result


def _by_steps(access: AccessFacts, s: StatementFacts, vectors: Number) -> Number:
    """Loads (or stores), where each step loads for itself."""
    moved = product(where(both(u, m), trip, 1) for u, m, trip in zip(s.unrolled, access.moves, s.trips, strict=True))
    return where(access.held, 0, moved * where(access.lane_stride > 0, vectors, 1))


def _sharing(access: AccessFacts, s: StatementFacts, inside: Number) -> _Sharing | None:
    """``None`` where no two steps read the same: no dimension is walked by steps and by the tile."""
    distinct: Number = 1
    waiting: Number = 0
    shares = False
    for position, width in enumerate(access.widths):
        steps, tile, by_step, by_tile = _walks(width, s)
        if steps is not None and tile is not None:
            # Lanes are along the last dimension: what is shifted by less than a vector is another vector.
            whole = 1 if position < len(access.widths) - 1 else equal(access.lane_stride, 0)
            # Between what a dilated one reads with a stride there are elements that nothing reads.
            near, far = minimum(by_tile, by_step), maximum(by_tile, by_step)
            gap = where(equal(modulo(far, maximum(near, 1)), 0), maximum(near, 1), 1)
            touched = (select(width, inside) - 1) / gap + 1
            here = where(every((whole, steps > 1, tile > 1)), minimum(touched / (steps * tile), 1), 1)
            # Of a convolution with a stride, not the next step reads it again, but the one that is as far as the stride.
            later = maximum(by_tile / maximum(by_step, 1), 1)
            distinct, waiting = distinct * here, waiting + (1 - here) * minimum(later / maximum(steps - later, 1), 1)
            shares = True
    if not shares:
        return None
    apart = equal(access.lane_stride, 2)
    return _Sharing(where(apart, 1, distinct), where(apart, 0, minimum(waiting, distinct)))


def _walks(width: Numbers, s: StatementFacts) -> _Walks:
    steps: Number | None = None
    tile: Number | None = None
    by_step: Number = 0
    by_tile: Number = 0
    for depth, (unrolled, reduce, trip) in enumerate(zip(s.unrolled, s.reduce, s.trips, strict=True)):
        if width[depth] is width[depth + 1] or largest(unrolled) == 0:
            continue
        moves = every((negated(equal(width[depth], width[depth + 1])), unrolled, negated(s.vector[depth])))
        stride = (width[depth] - width[depth + 1]) / maximum(trip - 1, 1)
        if largest(reduce) > 0:
            steps = (1 if steps is None else steps) * where(both(moves, reduce), trip, 1)
            by_step = where(both(moves, reduce), stride, by_step)
        if largest(negated(reduce)) > 0:
            tile = (1 if tile is None else tile) * where(both(moves, negated(reduce)), trip, 1)
            by_tile = where(both(moves, negated(reduce)), stride, by_tile)
    return _Walks(steps, tile, by_step, by_tile)
