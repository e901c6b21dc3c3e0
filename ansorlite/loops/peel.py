"""Peeling: the last iteration of a loop stands apart when the others then run whole vectors.

A reduction that its tiles do not divide has a last tile that is shorter, so the extent of the vectorised loop inside is
``min(64, 1009 - k * 64)``. In all iterations but the last that is 64::

    for k in 0..16:                                         for k in 0..15:
        vectorized(16) lane in 0..min(64, 1009 - k * 64):       vectorized(16) lane in 0..64: ...
            ...                                             vectorized(16) lane in 0..49: ...

A loop keeps its place even where a single iteration is left in it, so that the last one is known for what it is: features take
the two for one loop. ``kernel.source("loops")`` shows both parts.
"""

from __future__ import annotations

from dataclasses import replace

from ansorlite.loops.nodes import Alloc, Block, For, Function, If, LoopKind, Stmt, block, index
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import Ranges, copied, limits, map_in_ranges, within
from ansorlite.te.expr import Var


def peel(function: Function) -> Function:
    """``function`` with the last iterations of such loops apart."""
    peeled: set[Var] = set()

    def rule(stmt: Stmt, ranges: Ranges) -> Stmt | None:
        """The loop without its last iteration, and that; ``None`` where it is no such loop."""
        if not isinstance(stmt, For) or stmt.kind is not LoopKind.SERIAL:
            return None
        low, high = limits(stmt.extent, ranges)
        if not low == high > 1:
            return None
        last = int(high) - 1
        if not _ragged(stmt.body, within(stmt, ranges)) or _ragged(stmt.body, {**ranges, stmt.var: (0, last - 1)}):
            return None
        peeled.add(stmt.var)
        rest = copied(stmt.body, {stmt.var: index(last)})
        return block(For(stmt.var, index(last), stmt.kind, stmt.body), map_in_ranges(rest, rule, ranges))

    body = map_in_ranges(function.body, rule)
    return function if body is function.body else simplify(replace(function, body=body), kept=peeled)


def _ragged(stmt: Stmt, ranges: Ranges) -> bool:
    """Whether a vectorised loop in ``stmt`` has an extent that changes."""
    match stmt:
        case Block(body):
            return any(_ragged(child, ranges) for child in body)
        case If() | Alloc():
            return _ragged(stmt.body, ranges)
        case For():
            low, high = limits(stmt.extent, ranges)
            return (stmt.kind is LoopKind.VECTORIZED and low != high) or _ragged(stmt.body, within(stmt, ranges))
    return False
