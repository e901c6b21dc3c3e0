"""Elements that the steps of a register tile's reduction load again, as no register is left to keep them in.

Steps that are written out one after another often read the same elements: three taps of a convolution over six outputs read
eight, each up to three times. What one step has loaded the next ones take over, if registers are left beside the accumulators::

    unrolled k in 0..3:
        unrolled i in 0..6:
            vectorized(8) j in 0..16:
                tile[i, j] += A[i + k] * B[k, j]

Of 16 registers, 12 are accumulators and two hold a row of B; five elements of A would wait from step to step. LLVM, for which
equal loads are one, then stores and loads accumulators, or what it has spread. So a step does not see what another one has
loaded: it loads through a pointer of which LLVM does not know what it is. Where lanes are along the row, whole vectors wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from ansorlite.codegen import factors, vectorized
from ansorlite.codegen.context import Context
from ansorlite.codegen.register_tile import count, unrolled_update
from ansorlite.codegen.trimmed import trimmed
from ansorlite.loops.nodes import Buffer, For, Load
from ansorlite.loops.visit import Ranges, loads, trips
from ansorlite.once import once_for_each
from ansorlite.te.index.form import flat
from ansorlite.te.index.ranges import bounds
from ansorlite.te.traversal import free_vars


@dataclass(frozen=True)
class Steps:
    """Steps of a reduction into a register tile, written out one after another.

    Attributes:
        steps: the unrolled loops over them, outermost first.
        rows: the unrolled loops over the tile.
        lane: the vectorised one inside of all.
        along: the vectors that an update reads.
        spread: the elements that it spreads over a vector.
    """

    steps: tuple[For, ...]
    rows: tuple[For, ...]
    lane: For
    along: tuple[Load, ...]
    spread: tuple[Load, ...]

    @property
    def tile(self) -> int:
        """How many rows there are."""
        return math.prod(map(trips, self.rows))


@once_for_each
def steps_of(nest: For) -> Steps | None:
    """The steps that ``nest`` is; ``None`` of another nest."""
    found = unrolled_update(nest)
    if found is None:
        return None
    around, lane, update = found
    kept = frozenset(var for index in update.indices for var in free_vars(index))
    read = [load for load in loads(update.value) if load.buffer is not update.buffer]
    along, spread = (tuple(load for load in read if (lane.var in free_vars(load)) is moves) for moves in (True, False))
    steps, rows = (tuple(loop for loop in around if (loop.var in kept) is inside) for inside in (False, True))
    return Steps(steps, rows, lane, along, spread)


def emit(c: Context, loop: For, write: Callable[[Context, For], None]) -> None:
    """Write a loop by ``write``; in steps of a crowded tile, each is told that it is one (:attr:`Context.step`), and where sums
    would wander, updates are told to hold what they spread (:attr:`Context.holds`)."""
    found = None if c.step is not None or c.target.gpu is not None else steps_of(loop)
    if found is None:
        write(c, loop)
    elif not found.steps:
        with c.scope.layer():
            c.step = c.scope.depth if c.crowded else None
            write(c, loop)
            c.step = None
    elif c.crowded is None:
        c.crowded, c.holds = _crowded(c, loop, found), _wanders(c, found)
        write(c, loop)
        c.crowded, c.holds = None, False
    else:
        write(c, loop)


def _crowded(c: Context, nest: For, found: Steps) -> bool:
    """Whether the registers do not hold a tile, what an update reads along it, and what waits for a later step."""
    elements, others = _waiting(nest)
    vectors = vectorized.vectors_of(found.lane, c.target)
    return (found.tile + len(found.along) + others) * vectors + elements > c.target.vector_registers


def _wanders(c: Context, found: Steps) -> bool:
    """Whether sums would leave their registers for those of elements, each of which one update reads, until none is left."""
    alone = vectorized.vectors_of(found.lane, c.target) == 1 and any(
        count(load, found.rows) == found.tile for load in found.spread
    )
    short = 2 * found.tile + len(found.along) > c.target.vector_registers
    return alone and short and factors.overwritten(c.target)


@once_for_each
def _waiting(nest: For) -> tuple[int, int]:
    """What several steps of ``nest`` read and waits for a later one, at most: elements that are spread, and vectors."""
    found = steps_of(nest)
    assert found is not None
    return _most_waiting(found, found.spread), _most_waiting(found, found.along)


def _most_waiting(found: Steps, read: Sequence[Load]) -> int:
    by_step = [_elements(found, read, at) for at in product(*(range(trips(loop)) for loop in found.steps))]
    last = {element: number for number, elements in enumerate(by_step) for element in elements}
    waiting: set[tuple[Buffer, int]] = set()
    most = 0
    for number, elements in enumerate(by_step):
        waiting = {element for element in waiting | elements if last[element] > number}
        most = max(most, len(waiting))
    return most


def _elements(found: Steps, read: Sequence[Load], at: Sequence[int]) -> set[tuple[Buffer, int]]:
    """What of ``read`` a step reads, each by how far it is from what all loops of the nest read at 0."""
    known = {loop.var: (number, number) for loop, number in zip(found.steps, at, strict=True)}
    rows = [_needed(loop, known) for loop in found.rows]
    elements = set()
    for load in read:
        by = flat(load, load.buffer.strides).coefficients
        first = sum(by.get(loop.var, 0) * number for loop, number in zip(found.steps, at, strict=True))
        for row in product(*rows):
            place = sum(by.get(loop.var, 0) * number for loop, number in zip(found.rows, row, strict=True))
            elements.add((load.buffer, first + place))
    return elements


def _needed(loop: For, known: Ranges) -> range:
    """The iterations of a loop over a tile that may change something."""
    whole, found = range(trips(loop)), trimmed(loop)
    if found.body is loop.body:
        return whole
    begin, end = bounds(found.begin, known)[0], bounds(found.end, known)[1]
    return range(int(max(begin, whole.start)), int(min(end, whole.stop)))
