"""Fetching ahead: while one block of an operand is multiplied, the next one is on its way into the second cache.

A block that is copied right before its use is read from memory in short runs, a row apart: too short for the machine's own
prefetching, each on a page of its own. The loops that use it have time to ask for the next one, a few lines in each of
their iterations::

    for k in 0..14:                                            for k in 0..14:
        packed = B[k * 56 ..., j]                                  packed = B[k * 56 ..., j]
        for i in 0..32:                                            for i in 0..32:
            multiply                                                   prefetch B[(k + 1) * 56 + i * 2 ..., j]
                                                                       multiply

Features see the loops that were meant; ``kernel.source("loops")`` shows the prefetches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from ansorlite.alignment import CACHE_LINE
from ansorlite.loops.copies import Copy, copy_of, most
from ansorlite.loops.nodes import Alloc, Block, For, Function, Load, LoopKind, Prefetch, Scope, Stmt, block, index
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import loads, map_stmt
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Var
from ansorlite.te.functions import minimum
from ansorlite.te.index.form import flat
from ansorlite.te.index.ranges import bounds
from ansorlite.te.index.strides import step
from ansorlite.te.traversal import free_vars, substitute

#: With fewer iterations than this to share them, more lines are asked for at once than a core waits for.
_LEAST_SHARES: Final = 4
#: The number of a part that is the whole.
_FIRST: Final = index(0)
#: So many prefetches in a row are written out.
_WRITTEN_OUT: Final = 8


def fetch_ahead(function: Function, target: Target) -> Function:
    """``function`` with such prefetches."""

    def rule(stmt: Stmt) -> Stmt | None:
        return _ahead(stmt, target) if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL else None

    body = map_stmt(function.body, rule)
    return function if body is function.body else simplify(Function(function.name, function.params, function.outputs, body))


def _ahead(loop: For, target: Target) -> Stmt | None:
    """``loop`` with prefetches of what its next iteration copies; ``None`` where it copies nothing."""
    around: list[Alloc] = []
    inner = loop.body
    while isinstance(inner, Alloc):
        around.append(inner)
        inner = inner.body
    if not isinstance(inner, Block):
        return None
    parts = list(inner.body)
    for number, part in enumerate(inner.body):
        copy = copy_of(part)
        if copy is None or not _worth_it(copy, loop, target):
            continue
        readers = (n for n in range(number + 1, len(parts)) if any(load.buffer is copy.store.buffer for load in loads(parts[n])))
        reader = next(readers, None)
        if reader is not None:
            parts[reader] = _with_fetches(parts[reader], copy, loop)
    if all(a is b for a, b in zip(parts, inner.body, strict=True)):
        return None
    body = block(*parts)
    for alloc in reversed(around):
        body = Alloc(alloc.buffer, body)
    return For(loop.var, loop.extent, loop.kind, body)


def _worth_it(copy: Copy, loop: For, target: Target) -> bool:
    """Whether each iteration of ``loop`` copies something else that is not in the second cache, and that has room there."""
    temporary = copy.load.buffer.scope in (Scope.LOCAL, Scope.SHARED, Scope.REGISTER)
    moves = any(loop.var in free_vars(at) for at in copy.load.indices)
    return moves and not temporary and copy.load.buffer.nbytes > target.l2 and copy.store.buffer.nbytes <= target.l2 // 4


def _with_fetches(reader: Stmt, copy: Copy, loop: For) -> Stmt:
    """``reader``, each of whose iterations asks for its share of what the next iteration of ``loop`` copies."""
    chain = list(_chain(reader))
    shares = math.prod(most(each.extent) for each in chain)
    if shares < _LEAST_SHARES:
        return reader
    number: Expr = index(0)
    for each in chain:
        number = number * most(each.extent) + each.var
    body = block(fetches(copy.load, copy.loops, loop, 1, number, shares), chain[-1].body)
    for each in reversed(chain):
        body = For(each.var, each.extent, each.kind, body)
    return body


def _chain(stmt: Stmt) -> Iterator[For]:
    """The serial loops that ``stmt`` begins with, each of which is all that there is in the one before."""
    while isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL and math.isfinite(bounds(stmt.extent)[1]):
        yield stmt
        stmt = stmt.body


def fetches(
    load: Load, loops: Sequence[For], loop: For, distance: int, number: Expr = _FIRST, shares: int = 1, stage: str = ""
) -> Stmt:
    """The prefetches of a part of what ``load`` reads over ``loops``, so many iterations of ``loop`` later.

    Args:
        loops: that the load depends on, inside of ``loop``; outermost first.
        number, shares: which part it is, of how many.
    """
    following = minimum(loop.var + distance, loop.extent - 1)
    steps = _steps(load, loops)
    longest = max(steps, key=lambda each: most(each.extent) // steps[each], default=None)
    values: dict[Var, Expr] = {loop.var: following} | {each.var: index(0) for each in loops}
    nest: list[tuple[Var, int]] = []
    for each, held in steps.items():
        # The last element's line is one more where a run does not begin with a line.
        count = -(-most(each.extent) // held) + (held > 1)
        var = Var(each.var.name)
        place: Expr = var
        if each is longest:
            count = -(-count // shares)
            place = number * count + var
        nest.append((var, count))
        values[each.var] = minimum(place * held, substitute(each.extent, values) - 1)
    fetched = substitute(load, values)
    assert isinstance(fetched, Load)
    body: Stmt = Prefetch(fetched, stage)
    for var, count in reversed(nest):
        few = count <= _WRITTEN_OUT and isinstance(body, Prefetch)
        body = For(var, index(count), LoopKind.UNROLLED if few else LoopKind.SERIAL, body)
    return body


def _steps(load: Load, loops: Sequence[For]) -> dict[For, int]:
    """The loops to visit for each line of the source to be met, each with how many of its iterations one line holds.

    Loops that stay within a line, or nearly, as those over the taps of a window do, are left out.
    """
    line = CACHE_LINE // dtypes.size(load.dtype)
    address = flat(load, load.buffer.strides)
    strides = {loop: max(1, abs(step(address, loop.var))) for loop in loops}
    return {loop: max(1, line // stride) for loop, stride in strides.items() if stride * most(loop.extent) > line}
