"""Copies across the rows of their source take whole vectors of each row, and transpose them in registers.

A packed operand may lie across its source: neighbours of the copy are a row apart there. Element by element, each line of the
source is come back to many times, and rows a power of two apart displace one another in the first cache meanwhile::

    for k in 0..64:                              for k0 in 0..4:
        unrolled i in 0..8:                          unrolled i in 0..8:
            packed[k, i] = A[i, k]                       vectorized(16) k1 in 0..16:
                                                             packed[k0 * 16 + k1, i] = A[i, k0 * 16 + k1]

What becomes of the right one is said in ``codegen/transposed.py``. Loops that walk both sides as one, as those over the taps of a
window and over the channels do, are taken as one. It comes last of the passes: the others know copies by
their loops. Features see these loops, too; ``kernel.source("loops")`` shows the blocks.
"""

from __future__ import annotations

import math
from typing import Final

from ansorlite.loops.copies import Copy, copy_of
from ansorlite.loops.nodes import For, Function, LoopKind, Stmt, Store, index
from ansorlite.loops.visit import Ranges, map_in_ranges, within
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.functions import minimum
from ansorlite.te.index.ranges import bounds
from ansorlite.te.traversal import substitute

#: Bytes of an element, at least: of smaller ones too many go into a vector for all rows of a block to be in registers.
_LEAST_BYTES: Final = 4


def transposing(function: Function, target: Target) -> Function:
    """``function`` with such copies in blocks."""

    def rule(stmt: Stmt, ranges: Ranges) -> Stmt | None:
        copy = copy_of(stmt) if isinstance(stmt, For) else None
        return None if copy is None else _in_blocks(copy, ranges, target) or stmt

    body = map_in_ranges(function.body, rule)
    return function if body is function.body else Function(function.name, function.params, function.outputs, body)


def _in_blocks(copy: Copy, ranges: Ranges, target: Target) -> Stmt | None:
    """The loops of one copy over blocks; ``None`` where it is no such copy, or has no whole block."""
    last, lanes = copy.loops[-1], target.lanes(copy.store.buffer.dtype)
    height = last.extent
    if lanes < 2 or dtypes.size(copy.store.buffer.dtype) < _LEAST_BYTES or not isinstance(height, Const) or height.value < 2:
        return None
    run = _run(copy) if copy.written(last) == 1 and copy.read(last) > 1 else []
    if not run:
        return None
    for loop in copy.loops:
        ranges = within(loop, ranges)
    inside = math.prod(int(loop.extent.value) for loop in run[1:] if isinstance(loop.extent, Const))
    length = run[0].extent * inside
    if bounds(length, ranges)[0] < lanes:
        return None
    many = min(int(height.value), lanes)
    first, begin, row, column = (Var(loop.var.name) for loop in (run[0], last, last, run[0]))
    place = _begin(first, lanes, length) + column
    values: dict[Var, Expr] = {last.var: _begin(begin, many, height) + row}
    for loop in reversed(run[1:]):
        values[loop.var], place = place % loop.extent, place // loop.extent
    values[run[0].var] = place
    at = tuple(substitute(each, values) for each in copy.store.indices)
    body: Stmt = Store(copy.store.buffer, at, substitute(copy.load, values), copy.store.stage, copy.store.role)
    body = For(column, index(lanes), LoopKind.VECTORIZED, body, lanes)
    body = For(row, index(many), LoopKind.UNROLLED, body)
    if height.value > many:
        body = For(begin, index(-(-int(height.value) // many)), LoopKind.SERIAL, body)
    for loop in reversed(copy.loops[:-1]):
        if loop is run[0]:
            body = For(first, (length + (lanes - 1)) // lanes, LoopKind.SERIAL, body)
        elif loop not in run:
            body = For(loop.var, loop.extent, loop.kind, body)
    return body


def _begin(number: Var, size: int, length: Expr) -> Expr:
    """Where the ``number``-th block begins; the last one is moved inwards where they do not divide ``length``."""
    if isinstance(length, Const) and length.value == size:
        return index(0)
    if isinstance(length, Const) and length.value % size == 0:
        return number * size
    return minimum(number * size, length - size)


def _run(copy: Copy) -> list[For]:
    """The loops that walk a run of the source, one element after another, and the copy in even steps; the outermost first."""
    found: list[For] = []
    others = [loop for loop in copy.loops[:-1] if loop.kind in (LoopKind.SERIAL, LoopKind.UNROLLED)]
    read, written = 1, 0
    while True:
        following = next((loop for loop in others if copy.read(loop) == read and written in (0, copy.written(loop))), None)
        if following is None:
            return found
        found.insert(0, following)
        others.remove(following)
        if not isinstance(following.extent, Const):
            return found
        read, written = read * int(following.extent.value), copy.written(following) * int(following.extent.value)
