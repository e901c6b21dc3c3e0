"""Unrolling: a loop that does nothing but update registers by products takes as many steps in an iteration as suit a core.

*Few steps are too few.* Counting iterations and moving pointers takes five instructions, whatever a loop does; the product of a
tile of 4 x 16, in vectors of 8, has 14 others. A core whose threads are both busy fetches instructions for each of them every
other cycle, and then those five are not hidden behind the multiply-adds::

    for k in 0..64:                                         for k in 0..16:
        unrolled i in 0..4:                                     unrolled step in 0..4:
            vectorized(8) j in 0..16:                               unrolled i in 0..4:
                c[i, j] += A[k, i] * B[k, j]                            vectorized(8) j in 0..16:
                                                                            c[i, j] += A[k * 4 + step, i] * B[k * 4 + step, j]

A sum that loads as much as it adds waits for memory, and is left alone; so is what matrix units do.

*Many steps are too many.* Where a long sum was asked to be written out, each of its loads is an instruction of its own that runs
once a tile. What fetches ahead in hardware learns nothing from it, software cannot ask ahead, and two threads of a core have less
room for instructions that are decoded. It is rerolled::

    unrolled k in 0..32:                                    for k in 0..4:
        unrolled i in 0..8:                                     unrolled step in 0..8:
            vectorized(8) j in 0..8:                                unrolled i in 0..8:
                c[i, j] += A[k, i] * B[k, j]                            vectorized(8) j in 0..8:
                                                                            c[i, j] += A[k * 8 + step, i] * B[k * 8 + step, j]

Sums are made in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ansorlite.codegen import vectorized
from ansorlite.codegen.register_tile import count, unrolled_update
from ansorlite.codegen.trimmed import trimmed
from ansorlite.loops.matrix_tile import match
from ansorlite.loops.nodes import For, Function, Load, LoopKind, Stmt, index
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import copied, loads, map_stmt, trips
from ansorlite.target import Target
from ansorlite.te.expr import Const, Var
from ansorlite.te.index.form import flat
from ansorlite.te.traversal import free_vars

#: Vectors that an iteration updates: five instructions more are a tenth of what that takes.
_ENOUGH: Final = 32
#: Steps that a loop takes in an iteration instead of one, at most.
_MOST: Final = 4
#: More vectors than these are not updated in a row. Where a loop is made for it, its iterations update half of them at least.
_LONG: Final = 128


def unroll(function: Function, target: Target) -> Function:
    """``function`` with other numbers of steps in each iteration of such loops."""

    def rule(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, For) or not isinstance(stmt.extent, Const) or match(stmt, target) is not None:
            return None
        found = _step(stmt, target)
        if found is None:
            return None
        if stmt.kind is LoopKind.SERIAL and found.loaded < found.updates:
            return _in_steps(stmt, _more(trips(stmt), found.updates))
        if stmt.kind is LoopKind.UNROLLED and trips(stmt) * found.updates > _LONG and _is_even(stmt):
            return _in_steps(stmt, _fewer(trips(stmt), found.updates))
        return None

    body = map_stmt(function.body, rule)
    return function if body is function.body else simplify(Function(function.name, function.params, function.outputs, body))


@dataclass(frozen=True)
class _Step:
    """An iteration of a loop, in vectors.

    Attributes:
        updates: of registers.
        loaded: vectors, and elements that are spread over one.
    """

    updates: int
    loaded: int


def _step(loop: For, target: Target) -> _Step | None:
    """What an iteration of ``loop`` does, if that is a step of a sum in registers."""
    found = unrolled_update(loop.body) if isinstance(loop.body, For) else None
    if found is None:
        return None
    rows, lane, update = found
    vectors = vectorized.vectors_of(lane, target)
    read = [load for load in loads(update.value) if load.buffer is not update.buffer]
    loaded = sum(count(load, rows) * (vectors if lane.var in free_vars(load) else 1) for load in read)
    return _Step(math.prod(map(trips, rows)) * vectors, loaded)


def _is_even(loop: For) -> bool:
    """Whether each iteration updates the same registers, and reads what is equally far from what the one before has read."""
    found = unrolled_update(loop.body) if isinstance(loop.body, For) else None
    assert found is not None
    rows, _, update = found
    which = (*update.indices, *(end for row in rows for end in (trimmed(row).begin, trimmed(row).end)))
    return not any(loop.var in free_vars(each) for each in which) and all(_moves(load, loop.var) for load in loads(update.value))


def _moves(load: Load, var: Var) -> bool:
    """Whether what is loaded is as many elements further with each value of ``var``."""
    return all(term is var or var not in free_vars(term) for term, _ in flat(load, load.buffer.strides).terms)


def _more(steps: int, updates: int) -> int:
    """Of so many steps of a loop, how many an iteration takes."""
    taken = 1
    while taken < _MOST and taken * updates < _ENOUGH and steps % (2 * taken) == 0:
        taken *= 2
    return taken


def _fewer(steps: int, updates: int) -> int:
    """Of so many steps that were to be written out, how many an iteration takes."""
    return next((taken for taken in range(1, steps) if steps % taken == 0 and 2 * taken * updates >= _LONG), steps)


def _in_steps(loop: For, steps: int) -> Stmt | None:
    """``loop``, so many of its iterations at a time; ``None`` where it is that already."""
    if steps == (trips(loop) if loop.kind is LoopKind.UNROLLED else 1):
        return None
    var, step = Var(loop.var.name), Var("step")
    body = copied(loop.body, {loop.var: var * steps + step})
    return For(var, index(trips(loop) // steps), LoopKind.SERIAL, For(step, index(steps), LoopKind.UNROLLED, body))
