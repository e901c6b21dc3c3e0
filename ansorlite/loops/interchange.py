"""Interchange: a copy reads its source in the order in which that lies in memory.

A packed operand is laid out panel by panel, and written so as lowered. Its source then is read in short runs, a row apart,
each of which the core waits for. Where every run that is written is whole cache lines, the other order costs the writes nothing::

    for j0 in 0..16:                                       for k in 0..1024:
        for k in 0..1024:                                      for j0 in 0..16:
            vectorized(16) j in 0..64:                             vectorized(16) j in 0..64:
                packed[j0, k, j] = B[k, j0 * 64 + j]                   packed[j0, k, j] = B[k, j0 * 64 + j]

Back ends do this first: features and people see the loops in the order of the copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ansorlite.loops.nodes import For, Function, Load, LoopKind, Scope, Stmt, Store
from ansorlite.loops.visit import loads, map_stmt
from ansorlite.te import dtypes
from ansorlite.te.expr import Const, Var
from ansorlite.te.intervals import bounds
from ansorlite.te.traversal import free_vars

_CACHE_LINE: Final = 64
#: A parallel loop of so many iterations is enough for all threads.
_ENOUGH: Final = 16
_MOVABLE: Final = (LoopKind.SERIAL, LoopKind.PARALLEL)


def interchange(function: Function) -> Function:
    """``function`` with the loops of such copies in the order of their sources."""
    body = map_stmt(function.body, lambda stmt: _interchanged(stmt) if isinstance(stmt, For) else None)
    return function if body is function.body else Function(function.name, function.params, function.outputs, body)


def _interchanged(nest: For) -> Stmt | None:
    """The loops of one copy in another order; ``None`` where that is not known to be right, or no gain."""
    loops: list[For] = []
    inner: Stmt = nest
    while isinstance(inner, For):
        loops.append(inner)
        inner = inner.body
    if not isinstance(inner, Store) or not isinstance(inner.value, Load):
        return None
    load, fixed = inner.value, [loop for loop in loops if loop.kind not in _MOVABLE]
    movable = loops[: len(loops) - len(fixed)]
    if any(loop in fixed for loop in movable) or not _independent(loops, inner) or not _writes_lines(fixed, inner):
        return None
    order = sorted(movable, key=lambda loop: -_stride(load, loop.var))
    if nest.kind is LoopKind.PARALLEL:
        first = next(loop for loop in order if _trips(loop) >= min(_trips(nest), _ENOUGH))
        order = [first, *(loop for loop in order if loop is not first)]
    if order == movable:
        return None
    body = movable[-1].body
    for place, loop in reversed(list(zip(movable, order, strict=True))):
        body = For(loop.var, loop.extent, place.kind, body)
    return body


def _independent(loops: Sequence[For], copy: Store) -> bool:
    """Whether the loops run as often in any order, and each has an index of the copy to itself."""
    alone = all(isinstance(loop.extent, Const) and loop.var in copy.indices for loop in loops)
    looked_up = any(True for load in loads(copy.value) for at in load.indices for _ in loads(at))
    return alone and not looked_up and copy.buffer.scope in (Scope.GLOBAL, Scope.LOCAL)


def _trips(loop: For) -> int:
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)


def _writes_lines(fixed: Sequence[For], copy: Store) -> bool:
    """Whether the innermost loops, which stay, write a run of whole cache lines."""
    run = copy.buffer.shape[len(copy.indices) - len(fixed) :]
    last = copy.indices[len(copy.indices) - len(fixed) :]
    nbytes = math.prod(run) * dtypes.size(copy.buffer.dtype)
    whole = all(loop.var is at and _trips(loop) == extent for loop, at, extent in zip(fixed, last, run, strict=True))
    return bool(fixed) and whole and nbytes % _CACHE_LINE == 0


def _stride(load: Load, var: Var) -> int:
    """Elements of the source from the first iteration of a loop to the second, all others at their first."""
    apart = 0.0
    for at, stride in zip(load.indices, load.buffer.strides, strict=True):
        variables = free_vars(at)
        if var in variables:
            start, end = (bounds(at, {v: (i, i) if v is var else (0, 0) for v in variables})[0] for i in (0, 1))
            apart += (end - start) * stride
    return abs(int(apart))
