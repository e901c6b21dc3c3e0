"""Outer products in registers: the operand of fewer registers is held over a register tile, the other comes and goes.

An update of a register tile reads vectors along its rows, and elements that are each spread over a vector. As lowered, all
vectors of a row are held from its first row to the last, beside one spread element. Where the vectors are more than the elements,
the other order needs fewer registers beside the accumulators::

    unrolled i in 0..2:                                  unrolled part in 0..6:
        vectorized(8) j in 0..48:                            unrolled i in 0..2:
            tile[i, j] += A[i] * B[j]                            vectorized(8) j in 0..8:
                                                                     tile[i, part * 8 + j] += A[i] * B[part * 8 + j]

Of 16 registers, the tile of 12 leaves 4: the left order would need 7. Features know the smaller of the two.
"""

from __future__ import annotations

import math

from ansorlite.loops.nodes import For, Function, Load, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import copied, loads, map_exprs, map_outermost
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.traversal import free_vars, substitute


def outer_product(function: Function) -> Function:
    """``function`` with the vectors of such register tiles outside."""
    # Whole nests first: a part of one is no register tile.
    body = map_outermost(function.body, lambda stmt: _vectors_outside(stmt) if isinstance(stmt, For) else None)
    return function if body is function.body else simplify(Function(function.name, function.params, function.outputs, body))


def _vectors_outside(nest: For) -> Stmt | None:
    """The other order of one register tile; ``None`` where it is none, or better as it is."""
    rows: list[For] = []
    stmt: Stmt = nest
    while isinstance(stmt, For) and stmt.kind is LoopKind.UNROLLED and isinstance(stmt.extent, Const):
        rows.append(stmt)
        stmt = stmt.body
    if not rows or not isinstance(stmt, For) or stmt.kind is not LoopKind.VECTORIZED or not isinstance(stmt.extent, Const):
        return None
    lane, update = stmt, stmt.body
    if not isinstance(update, Store) or update.role is not Role.UPDATE or update.buffer.scope is not Scope.REGISTER:
        return None
    # Each element is updated in one part alone, so that its updates stay in order.
    accumulators = [load for load in loads(update.value) if load.buffer is update.buffer]
    if lane.var not in update.indices or any(load.indices != update.indices for load in accumulators):
        return None
    whole, rest = divmod(int(stmt.extent.value), lane.lanes)
    operands = [load for load in loads(update.value) if load.buffer is not update.buffer]
    along = [load for load in operands if lane.var in free_vars(load)]
    spread = [load for load in operands if lane.var not in free_vars(load)]
    across = sum(_count(load, rows) for load in spread)
    if whole < 2 or any(_count(load, rows) > 1 for load in along) or len(along) * (whole + (rest > 0)) <= across:
        return None
    part = Var(f"{lane.var.name}_vector", lane.var.dtype)
    inside = _moved(lane, part * lane.lanes, lane.lanes)
    vectors: list[Stmt] = [For(part, index(whole), LoopKind.UNROLLED, _around(rows, inside))]
    if rest:
        vectors.append(copied(_around(rows, _moved(lane, index(whole * lane.lanes), rest)), {}))
    return block(*vectors)


def _moved(lane: For, by: Expr, extent: int) -> For:
    """A part of a vectorized loop: ``extent`` iterations from ``by`` on, counted from 0."""
    values = {lane.var: by + lane.var}
    return For(lane.var, index(extent), lane.kind, map_exprs(lane.body, lambda e: substitute(e, values)), lane.lanes)


def _around(rows: list[For], body: Stmt) -> Stmt:
    for loop in reversed(rows):
        body = For(loop.var, loop.extent, loop.kind, body)
    return body


def _count(load: Load, rows: list[For]) -> int:
    """How many elements, or vectors, of one row's position are read over the rows of a tile."""
    variables = free_vars(load)
    return math.prod(int(loop.extent.value) for loop in rows if loop.var in variables and isinstance(loop.extent, Const))
