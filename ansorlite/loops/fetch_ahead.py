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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ansorlite.alignment import CACHE_LINE
from ansorlite.loops.copies import Copy, copy_of, most
from ansorlite.loops.nodes import Alloc, Block, For, Function, If, Load, LoopKind, Prefetch, Scope, Stmt, block, index
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import loads, map_stmt
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Var
from ansorlite.te.functions import maximum, minimum
from ansorlite.te.index.form import flat
from ansorlite.te.index.ranges import bounds
from ansorlite.te.index.strides import step
from ansorlite.te.traversal import free_vars, substitute

#: The number of a part that is the whole.
_FIRST: Final = index(0)
#: With fewer iterations than this to share them, more lines are asked for at once than a core waits for.
_LEAST_SHARES: Final = 4
#: With fewer lines to each of them, to find out which they are takes longer than asking for them.
_LEAST_LINES: Final = 4
#: So many prefetches in a row are written out.
_WRITTEN_OUT: Final = 8


def fetch_ahead(function: Function, target: Target) -> Function:
    """``function`` with such prefetches."""
    far = sum(buffer.nbytes for buffer in function.params) > target.reach[-1]

    def rule(stmt: Stmt) -> Stmt | None:
        return _ahead(stmt, target, far) if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL else None

    body = map_stmt(function.body, rule)
    return function if body is function.body else simplify(Function(function.name, function.params, function.outputs, body))


def _ahead(loop: For, target: Target, far: bool) -> Stmt | None:
    """``loop`` with prefetches of what its next iteration copies; ``None`` where it copies nothing.

    Args:
        far: whether the last cache does not hold all that the function is given: it comes from memory in each call.
    """
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
        if copy is None or not _worth_it(copy, loop, target, far):
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


def _worth_it(copy: Copy, loop: For, target: Target, far: bool) -> bool:
    """Whether each iteration of ``loop`` copies something else that is not in the second cache, and that has room there."""
    temporary = copy.load.buffer.scope in (Scope.LOCAL, Scope.SHARED, Scope.REGISTER)
    moves = any(loop.var in free_vars(at) for at in copy.load.indices)
    # Rows with a border lie side by side: from a cache they come fast enough, from memory they do not.
    wanted = moves and (far or not copy.bordered) and not temporary
    return wanted and copy.load.buffer.nbytes > target.l2 and copy.store.buffer.nbytes <= target.l2 // 4


def _with_fetches(reader: Stmt, copy: Copy, loop: For) -> Stmt:
    """``reader``, whose iterations each ask for their share of what the next iteration of ``loop`` copies."""
    lines = math.prod(_lines(_steps(copy.load, copy.loops)).values())
    chain: list[For] = []
    shares = 1
    for each in _chain(reader):
        if shares >= _LEAST_SHARES and lines < _LEAST_LINES * shares * most(each.extent):
            break
        chain.append(each)
        shares *= most(each.extent)
    if shares < _LEAST_SHARES:
        return reader
    number: Expr = index(0)
    for each in chain:
        number = number * most(each.extent) + each.var
    asked = fetches(copy.load, copy.loops, loop, 1, number, shares, clamped=copy.bordered)
    body = block(asked, chain[-1].body)
    for each in reversed(chain):
        body = For(each.var, each.extent, each.kind, body)
    return body


def _chain(stmt: Stmt) -> Iterator[For]:
    """The serial loops that ``stmt`` begins with, each of which is all that there is in the one before."""
    while isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL and math.isfinite(bounds(stmt.extent)[1]):
        yield stmt
        stmt = stmt.body


def fetches(
    load: Load,
    loops: Sequence[For],
    loop: For,
    distance: int,
    number: Expr = _FIRST,
    shares: int = 1,
    stage: str = "",
    clamped: bool = False,
) -> Stmt:
    """The prefetches of a part of what ``load`` reads over ``loops``, so many iterations of ``loop`` later.

    Args:
        loops: that the load depends on, inside of ``loop``; outermost first.
        number, shares: which part it is, of how many; the last ones may be empty.
        clamped: whether the load may be beyond the end of its buffer, in whose place the nearest element is asked for.
    """
    steps = _steps(load, loops)
    lines = _lines(steps)
    cuts = _cuts(lines, shares)
    parts, rest = math.prod(cuts.values()), number
    nest: list[tuple[Var, int]] = []
    values: dict[Var, Expr] = {loop.var: minimum(loop.var + distance, loop.extent - 1)} | {each.var: index(0) for each in loops}
    for each in reversed(lines):
        count, var = -(-lines[each] // cuts[each]), Var(each.var.name)
        nest.append((var, count))
        values[each.var] = rest % cuts[each] * count + var
        rest = rest // cuts[each]
    for each, held in steps.items():
        values[each.var] = minimum(values[each.var] * held, substitute(each.extent, values) - 1)
    fetched = substitute(load, values)
    assert isinstance(fetched, Load)
    if clamped:
        inside = zip(fetched.indices, fetched.buffer.shape, strict=True)
        fetched = replace(fetched, indices=tuple(maximum(minimum(at, extent - 1), 0) for at, extent in inside))
    body: Stmt = Prefetch(fetched, stage)
    for var, count in nest:
        few = count <= _WRITTEN_OUT and isinstance(body, Prefetch)
        body = For(var, index(count), LoopKind.UNROLLED if few else LoopKind.SERIAL, body)
    return body if parts == shares else If(number < parts, body)


def _lines(steps: Mapping[For, int]) -> dict[For, int]:
    """How many places in each loop are visited for each line of the source to be met."""
    # The last element's line is one more where a run does not begin with a line.
    return {each: -(-most(each.extent) // held) + (held > 1) for each, held in steps.items()}


def _cuts(lines: Mapping[For, int], shares: int) -> dict[For, int]:
    """Into how many parts the places of each loop are cut, for at most so many parts in all; the longest loop first."""
    cuts: dict[For, int] = {}
    for each in sorted(lines, key=lines.__getitem__, reverse=True):
        count = -(-lines[each] // min(lines[each], shares))
        cuts[each] = -(-lines[each] // count)
        shares //= cuts[each]
    return cuts


def _steps(load: Load, loops: Sequence[For]) -> dict[For, int]:
    """The loops to visit for each line of the source to be met, each with how many of its iterations one line holds.

    Loops that stay within a line, or nearly, as those over the taps of a window do, are left out.
    """
    line = CACHE_LINE // dtypes.size(load.dtype)
    address = flat(load, load.buffer.strides)
    strides = {loop: max(1, abs(step(address, loop.var))) for loop in loops}
    return {loop: max(1, line // stride) for loop, stride in strides.items() if stride * most(loop.extent) > line}
