"""A loop that copies and computes, as one that copies for later iterations while it computes::

    for k in 0..16:                                   alloc a: [4, 64]
        alloc a: [64]                                 for p in 0..3:
            thread t: a[t] = A[k, t]                      group:
            thread t: ... a[...] ...                          thread t: a[p, t] = A[p, t]
                                                      for k in 0..16:
                                                          await all groups but 2
                                                          group:
                                                              if k + 3 < 16:
                                                                  thread t: a[(k + 3) % 4, t] = A[k + 3, t]
                                                          thread t: ... a[k % 4, ...] ...

What is shared becomes a ring of slots. When an iteration begins, all threads have left the slot of the one before, and that is
the one that the next copy goes to: the await is the only barrier that the ring needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from ansorlite.alignment import aligned
from ansorlite.loops.nodes import (
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    For,
    If,
    Load,
    LoopKind,
    Role,
    Stmt,
    Store,
    block,
    index,
)
from ansorlite.loops.visit import copied, map_exprs, map_stmt, stores
from ansorlite.te import dtypes
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.traversal import rewrite

_FIRST: Final = index(0)


def pipelined(loop: For, shared: Collection[Buffer], stages: int) -> Stmt:
    """``loop`` with what it copies into ``shared`` buffers copied ``stages - 1`` iterations ahead.

    Args:
        loop: of a constant number of iterations. If its body allocates the buffers, then first of all; in it are, among other
            things, phases that store to these buffers alone, and read nothing that is stored in the loop.
        stages: slots of each ring; with one slot, or one iteration, the loop stays as it is.
    """
    extent = IndexAlgebra().simplify(loop.extent)
    assert isinstance(extent, Const)
    count = int(extent.value)
    stages = min(stages, count)
    if stages < 2:
        return loop
    others: list[Buffer] = []
    inner = loop.body
    while isinstance(inner, Alloc):
        if inner.buffer not in shared:
            others.append(inner.buffer)
        inner = inner.body
    parts = inner.body if isinstance(inner, Block) else (inner,)
    fetching = block(*(part for part in parts if _fills(part, shared)))
    computing = block(*(part for part in parts if not _fills(part, shared)))
    rings = {buffer: ring(buffer, stages) for buffer in shared}

    def fetch(iteration: Expr, slot: Expr) -> Stmt:
        return _in_slot(copied(fetching, {loop.var: iteration}), rings, slot, fetches=True)

    first, ahead = Var("p"), loop.var + (stages - 1)
    prologue = For(first, index(stages - 1), LoopKind.SERIAL, FetchGroup(fetch(first, first)))
    body = _in_slot(computing, rings, loop.var % stages, fetches=False)
    for buffer in reversed(others):
        body = Alloc(buffer, body)
    iteration = block(Await(stages - 2), FetchGroup(If(ahead < count, fetch(ahead, ahead % stages))), body)
    result = block(prologue, For(loop.var, extent, loop.kind, iteration))
    for buffer in reversed(list(rings.values())):
        result = Alloc(buffer, result)
    return result


def ring(buffer: Buffer, stages: int) -> Buffer:
    """``stages`` slots of what ``buffer`` is, each of which begins where a buffer of its own would."""
    shape = buffer.shape or (1,)
    pads = buffer.pads or (0,) * len(shape)
    item = dtypes.size(buffer.dtype)
    behind = (aligned(buffer.nbytes) - buffer.nbytes) // item
    return replace(buffer, shape=(stages, *shape), pads=(0, pads[0] + behind, *pads[1:]))


def _fills(part: Stmt, shared: Collection[Buffer]) -> bool:
    stored = {store.buffer for store in stores(part)}
    return bool(stored) and stored <= set(shared)


def _in_slot(stmt: Stmt, rings: Mapping[Buffer, Buffer], slot: Expr, *, fetches: bool) -> Stmt:
    """``stmt`` on a slot of the rings instead of their buffers."""

    def loaded(node: Expr) -> Expr | None:
        if isinstance(node, Load) and node.buffer in rings:
            return Load(rings[node.buffer], (slot, *(node.indices or (_FIRST,))), node.dtype)
        return None

    def stored(node: Stmt) -> Stmt | None:
        if not isinstance(node, Store) or node.buffer not in rings:
            return None
        role = Role.FETCH if fetches else node.role
        return replace(node, buffer=rings[node.buffer], indices=(slot, *(node.indices or (_FIRST,))), role=role)

    return map_stmt(map_exprs(stmt, lambda expr: rewrite(expr, loaded)), stored)
