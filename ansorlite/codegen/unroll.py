"""Unrolling: a loop that does nothing but update a few registers by products takes several steps in each iteration.

Counting iterations and moving pointers takes five instructions, whatever a loop does; the product of a tile of 4 x 16, in vectors
of 8, has 14 others. A core whose threads are both busy fetches instructions for each of them every other cycle, and then those
five are not hidden behind the multiply-adds::

    for k in 0..64:                                         for k in 0..16:
        unrolled i in 0..4:                                     unrolled step in 0..4:
            vectorized(8) j in 0..16:                               unrolled i in 0..4:
                c[i, j] += A[k, i] * B[k, j]                            vectorized(8) j in 0..16:
                                                                            c[i, j] += A[k * 4 + step, i] * B[k * 4 + step, j]

A sum that loads as much as it adds waits for memory, and is left alone. Sums are made in the same order.
"""

from __future__ import annotations

import math
from typing import Final

from ansorlite.codegen import vectorized
from ansorlite.codegen.register_tile import count, unrolled_update
from ansorlite.loops.nodes import For, Function, LoopKind, Stmt, index
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import copied, loads, map_stmt, trips
from ansorlite.target import Target
from ansorlite.te.expr import Const, Var
from ansorlite.te.traversal import free_vars

#: Vectors that an iteration updates: five instructions more are a tenth of what that takes.
_ENOUGH: Final = 32
#: Steps of an iteration, at most.
_MOST: Final = 4


def unroll(function: Function, target: Target) -> Function:
    """``function`` with several steps in each iteration of such loops."""

    def rule(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, For) or stmt.kind is not LoopKind.SERIAL or not isinstance(stmt.extent, Const):
            return None
        updates = _updates(stmt.body, target)
        steps = 1
        while steps < _MOST and steps * updates < _ENOUGH and trips(stmt) % (2 * steps) == 0:
            steps *= 2
        return _in_steps(stmt, steps) if updates and steps > 1 else None

    body = map_stmt(function.body, rule)
    return function if body is function.body else simplify(Function(function.name, function.params, function.outputs, body))


def _updates(body: Stmt, target: Target) -> int:
    """How many vectors of registers are updated by what does nothing else, and loads less than that; 0 where it is not so."""
    found = unrolled_update(body) if isinstance(body, For) else None
    if found is None:
        return 0
    rows, lane, update = found
    vectors = vectorized.vectors_of(lane, target)
    read = [load for load in loads(update.value) if load.buffer is not update.buffer]
    loaded = sum(count(load, rows) * (vectors if lane.var in free_vars(load) else 1) for load in read)
    updates = math.prod(map(trips, rows)) * vectors
    return updates if loaded < updates else 0


def _in_steps(loop: For, steps: int) -> Stmt:
    """``loop``, so many of its iterations at a time."""
    var, step = Var(loop.var.name), Var("step")
    body = copied(loop.body, {loop.var: var * steps + step})
    return For(var, index(trips(loop) // steps), loop.kind, For(step, index(steps), LoopKind.UNROLLED, body))
