"""The order in which the update of a register tile is written out: the operand of fewer registers is held.

An update of a register tile reads vectors along its rows, and elements that are each spread over a vector. Row by row, all
vectors of a row are held from the first row to the last, beside one spread element. Where the vectors are more than the
elements, vector by vector needs fewer registers beside the accumulators: the elements are held, and one vector at a time::

    unrolled i in 0..2:
        vectorized(8) j in 0..48:
            tile[i, j] += A[i] * B[j]

Of 16 registers, the tile of 12 leaves 4: row by row would need 7. Where lanes are along the rows of a window, rows read different
vectors, and channels different elements::

    unrolled o in 0..2:
        unrolled h in 0..14:
            vectorized(16) w in 0..14:
                tile[o, h, w] += X[h, w] * W[o]

Of each row then both channels are updated: two elements are held, not fourteen vectors. It is straight-line code either way: no
loop of the machine code is another one for it.
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
from ansorlite.te.expr import Const, Var
from ansorlite.te.traversal import free_vars


@dataclass(frozen=True)
class Tile:
    """The update of a register tile, in the order in which it is written out: loops around its vectors, and loops inside of them.

    Attributes:
        outer, inner: unrolled loops, outermost first.
        lane: the vectorized loop inside of them all.
        columns: how many elements that covers.
    """

    outer: tuple[For, ...]
    inner: tuple[For, ...]
    lane: For
    columns: int


@dataclass(frozen=True)
class _Update:
    """What the update of a register tile reads, whatever the target.

    Attributes:
        rows: the unrolled loops, outermost first.
        moving: those of them with which vectors move; of the others it is the spread elements that do.
        along: how many vectors at each place of the lanes, over all rows.
        spread: how many elements that are spread, over all rows.
    """

    rows: tuple[For, ...]
    moving: tuple[For, ...]
    lane: For
    along: int
    spread: int


def match(c: Context, nest: For) -> Tile | None:
    """The register tile that ``nest`` updates; ``None`` where it is none, or is written out as well row by row."""
    found = _update(nest)
    if found is None:
        return None
    columns, vectors = trips(found.lane), vectorized.vectors_of(found.lane, c.target)
    still = tuple(loop for loop in found.rows if loop not in found.moving)
    if found.along * vectors > found.spread:
        return Tile(found.moving, still, found.lane, columns) if vectors >= 2 or found.moving else None
    return Tile((*still, *found.moving), (), found.lane, columns) if found.moving else None


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
    moving = tuple(loop for loop in rows if any(loop.var in free_vars(load) for load in along))
    if moving and not _in_any_order(rows, moving, update, spread):
        return None
    return _Update(rows, moving, lane, sum(count(load, rows) for load in along), sum(count(load, rows) for load in spread))


def _in_any_order(rows: Sequence[For], moving: Sequence[For], update: Store, spread: Sequence[Load]) -> bool:
    """Whether all loops are over the tile, none moves both vectors and what is spread, and what each does depends on no other."""
    variables = {loop.var for loop in rows}
    kept = frozenset[Var]().union(*map(free_vars, update.indices))
    apart = all(loop.var not in free_vars(load) for loop in moving for load in spread)
    ends = [(loop, free_vars(trimmed(loop).begin) | free_vars(trimmed(loop).end)) for loop in rows]
    return variables <= kept and apart and all(used.isdisjoint(variables - {loop.var}) for loop, used in ends)


def emit(c: Context, tile: Tile, body: Body) -> None:
    """Write it; ``body`` writes the update in a context."""

    def vectors() -> None:
        for begin, lanes in vectorized.pieces(c, tile.lane, tile.columns):
            _rows(c, tile.inner, partial(vectorized.chunk, c, tile.lane, str(begin), (begin, begin), lanes, body))

    _rows(c, tile.outer, vectors)


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


def count(load: Load, rows: Sequence[For]) -> int:
    """How many elements, or vectors, of one row's position are read over the rows of a tile."""
    variables = free_vars(load)
    return math.prod(trips(loop) for loop in rows if loop.var in variables)
