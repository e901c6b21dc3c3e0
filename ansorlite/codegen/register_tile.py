"""The order in which the update of a register tile is written out: the operand of fewer registers is held.

An update of a register tile reads vectors along its rows, and elements that are each spread over a vector. Row by row, all
vectors of a row are held from the first row to the last, beside one spread element. Where the vectors are more than the
elements, vector by vector needs fewer registers beside the accumulators: the elements are held, and one vector at a time::

    unrolled i in 0..2:
        vectorized(8) j in 0..48:
            tile[i, j] += A[i] * B[j]

Of 16 registers, the tile of 12 leaves 4: row by row would need 7. It is straight-line code either way: no loop of the machine
code is another one for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ansorlite.codegen import vectorized
from ansorlite.codegen.context import Body, Context
from ansorlite.codegen.control import bound
from ansorlite.codegen.trimmed import trimmed, written_out
from ansorlite.loops.nodes import For, Load, LoopKind, Role, Scope, Stmt, Store
from ansorlite.loops.visit import loads, trips
from ansorlite.once import once_for_each
from ansorlite.te.expr import Const
from ansorlite.te.traversal import free_vars


@dataclass(frozen=True)
class Tile:
    """The update of a register tile whose vectors are more than its spread elements.

    Attributes:
        rows: the unrolled loops, outermost first.
        lane: the vectorized loop inside of them.
        columns: how many elements that covers.
    """

    rows: tuple[For, ...]
    lane: For
    columns: int


@dataclass(frozen=True)
class _Update:
    """What the update of a register tile reads, whatever the target.

    Attributes:
        along: how many vectors at each place of the lanes, the same for all rows.
        spread: how many elements that are spread, over all rows.
    """

    tile: Tile
    along: int
    spread: int


def match(c: Context, nest: For) -> Tile | None:
    """The register tile that ``nest`` updates; ``None`` where it is none, or better written out row by row."""
    found = _update(nest)
    if found is None:
        return None
    vectors = -(-found.tile.columns // vectorized.lanes_of(found.tile.lane, c.target))
    return found.tile if vectors >= 2 and found.along * vectors > found.spread else None


def unrolled_update(nest: For) -> tuple[tuple[For, ...], For, Store] | None:
    """Of a nest that does nothing but update a register buffer: the unrolled loops, outermost first, the vectorized one inside of
    them, and the update. ``None`` of another nest.

    Of a loop over the buffer, iterations that change nothing may be left out (:mod:`ansorlite.codegen.trimmed`).
    """
    unrolled: list[For] = []
    stmt: Stmt = nest
    while isinstance(stmt, For) and stmt.kind is LoopKind.UNROLLED and isinstance(stmt.extent, Const):
        unrolled.append(stmt)
        stmt = trimmed(stmt).body
    if not unrolled or not isinstance(stmt, For) or stmt.kind is not LoopKind.VECTORIZED or not isinstance(stmt.extent, Const):
        return None
    update = stmt.body
    if not isinstance(update, Store) or update.role is not Role.UPDATE or update.buffer.scope is not Scope.REGISTER:
        return None
    kept = {var for place in update.indices for var in free_vars(place)}
    if any(trimmed(loop).body is not loop.body for loop in unrolled if loop.var not in kept):
        return None
    return tuple(unrolled), stmt, update


@once_for_each
def _update(nest: For) -> _Update | None:
    """Of a nest that updates a register tile, each element in one vector; ``None`` of another one.

    A nest is met as often as the loops around it are unrolled.
    """
    found = unrolled_update(nest)
    if found is None:
        return None
    rows, lane, update = found
    # Updates of an element that are in one vector alone stay in order.
    read = list(loads(update.value))
    accumulators = [load for load in read if load.buffer is update.buffer]
    if lane.var not in update.indices or any(load.indices != update.indices for load in accumulators):
        return None
    operands = [load for load in read if load.buffer is not update.buffer]
    along = [load for load in operands if lane.var in free_vars(load)]
    spread = [load for load in operands if lane.var not in free_vars(load)]
    if any(_count(load, rows) > 1 for load in along):
        return None
    return _Update(Tile(rows, lane, trips(lane)), len(along), sum(_count(load, rows) for load in spread))


def emit(c: Context, tile: Tile, body: Body) -> None:
    """Write it vector by vector; ``body`` writes the update in a context."""
    for begin, lanes in vectorized.pieces(c, tile.lane, tile.columns):
        _rows(c, tile.rows, partial(vectorized.chunk, c, tile.lane, str(begin), (begin, begin), lanes, body))


def _rows(c: Context, rows: Sequence[For], update: Callable[[], None]) -> None:
    """``update`` at every iteration of ``rows`` that changes something."""
    if not rows:
        update()
        return
    loop, *inside = rows
    numbers = written_out(c, loop)
    assert numbers is not None
    for number in numbers:
        with bound(c, loop.var, str(number), (number, number)):
            _rows(c, inside, update)


def _count(load: Load, rows: Sequence[For]) -> int:
    """How many elements, or vectors, of one row's position are read over the rows of a tile."""
    variables = free_vars(load)
    return math.prod(trips(loop) for loop in rows if loop.var in variables)
