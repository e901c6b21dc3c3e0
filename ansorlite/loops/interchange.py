"""Interchange: a copy reads its source in the order in which that lies in memory.

A packed operand is laid out panel by panel, and written so as lowered. Its source then is read in short runs, a row apart,
each of which the core waits for. Where every run that is written is whole cache lines, the other order costs the writes nothing::

    for j0 in 0..16:                                       for k in 0..1024:
        for k in 0..1024:                                      for j0 in 0..16:
            vectorized(16) j in 0..64:                             vectorized(16) j in 0..64:
                packed[j0, k, j] = B[k, j0 * 64 + j]                   packed[j0, k, j] = B[k, j0 * 64 + j]

Features see the loops in the order of the copy; ``kernel.source("loops")`` shows the order that runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ansorlite.loops.copies import CACHE_LINE, copy_of
from ansorlite.loops.nodes import For, Function, LoopKind, Stmt, Store
from ansorlite.loops.visit import map_stmt
from ansorlite.te import dtypes
from ansorlite.te.expr import Const

#: A parallel loop of so many iterations is enough for all threads.
_ENOUGH: Final = 16
_MOVABLE: Final = (LoopKind.SERIAL, LoopKind.PARALLEL)


def interchange(function: Function) -> Function:
    """``function`` with the loops of such copies in the order of their sources."""
    body = map_stmt(function.body, lambda stmt: _interchanged(stmt) if isinstance(stmt, For) else None)
    return function if body is function.body else Function(function.name, function.params, function.outputs, body)


def _interchanged(nest: For) -> Stmt | None:
    """The loops of one copy in another order; ``None`` where that is not known to be right, or no gain."""
    copy = copy_of(nest)
    if copy is None or not all(isinstance(loop.extent, Const) for loop in copy.loops):
        return None
    fixed = [loop for loop in copy.loops if loop.kind not in _MOVABLE]
    movable = list(copy.loops[: len(copy.loops) - len(fixed)])
    if any(loop in fixed for loop in movable) or not _writes_lines(fixed, copy.store):
        return None
    order = sorted(movable, key=lambda loop: -copy.read(loop))
    if nest.kind is LoopKind.PARALLEL:
        first = next(loop for loop in order if _trips(loop) >= min(_trips(nest), _ENOUGH))
        order = [first, *(loop for loop in order if loop is not first)]
    if order == movable:
        return None
    body = movable[-1].body
    for place, loop in reversed(list(zip(movable, order, strict=True))):
        body = For(loop.var, loop.extent, place.kind, body)
    return body


def _trips(loop: For) -> int:
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)


def _writes_lines(fixed: Sequence[For], copy: Store) -> bool:
    """Whether the innermost loops, which stay, write a run of whole cache lines."""
    run = copy.buffer.shape[len(copy.indices) - len(fixed) :]
    last = copy.indices[len(copy.indices) - len(fixed) :]
    nbytes = math.prod(run) * dtypes.size(copy.buffer.dtype)
    whole = all(loop.var is at and _trips(loop) == extent for loop, at, extent in zip(fixed, last, run, strict=True))
    return bool(fixed) and whole and nbytes % CACHE_LINE == 0
