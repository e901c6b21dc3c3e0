"""Peeling: the last iteration of a loop stands apart when the others then run whole vectors.

A reduction that its tiles do not divide has a last tile that is shorter, so the extent of the vectorised loop inside is
``min(64, 1009 - k * 64)``. In all iterations but the last that is 64::

    for k in 0..16:                                         for k in 0..15:
        vectorized(16) lane in 0..min(64, 1009 - k * 64):       vectorized(16) lane in 0..64: ...
            ...                                             vectorized(16) lane in 0..49: ...

Features see the one loop that was meant; ``kernel.source("loops")`` shows both parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansorlite.loops.nodes import Alloc, Block, For, Function, If, LoopKind, Stmt, block, index
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import copied
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.intervals import Interval, bounds

Ranges = Mapping[Var, Interval]


def peel(function: Function) -> Function:
    """``function`` with the last iterations of such loops apart."""
    body = _peeled(function.body, {})
    return function if body is function.body else simplify(Function(function.name, function.params, function.outputs, body))


def _peeled(stmt: Stmt, ranges: Ranges) -> Stmt:
    match stmt:
        case Block(body):
            parts = tuple(_peeled(child, ranges) for child in body)
            return stmt if all(a is b for a, b in zip(parts, body, strict=True)) else block(*parts)
        case If(cond, body):
            inner = _peeled(body, ranges)
            return stmt if inner is body else If(cond, inner)
        case Alloc(buffer, body):
            inner = _peeled(body, ranges)
            return stmt if inner is body else Alloc(buffer, inner)
        case For():
            return _peeled_loop(stmt, ranges)
    return stmt


def _peeled_loop(loop: For, ranges: Ranges) -> Stmt:
    low, high = _limits(loop.extent, ranges)
    if loop.kind is LoopKind.SERIAL and low == high > 1:
        last = int(high) - 1
        shorter = {**ranges, loop.var: (0, last - 1)}
        if _ragged(loop.body, {**ranges, loop.var: (0, last)}) and not _ragged(loop.body, shorter):
            rest = copied(loop.body, {loop.var: index(last)})
            return block(For(loop.var, index(last), loop.kind, loop.body), _peeled(rest, ranges))
    inner = _peeled(loop.body, {**ranges, loop.var: (0, high - 1)})
    return loop if inner is loop.body else For(loop.var, loop.extent, loop.kind, inner, loop.lanes)


def _ragged(stmt: Stmt, ranges: Ranges) -> bool:
    """Whether a vectorised loop in ``stmt`` has an extent that changes."""
    for loop, inside in _loops(stmt, ranges):
        if loop.kind is LoopKind.VECTORIZED:
            low, high = _limits(loop.extent, inside)
            if low != high:
                return True
    return False


def _limits(extent: Expr, ranges: Ranges) -> Interval:
    """The bounds of an extent; nearly all are literals."""
    return (extent.value, extent.value) if isinstance(extent, Const) else bounds(extent, ranges)


def _loops(stmt: Stmt, ranges: Ranges) -> Iterator[tuple[For, Ranges]]:
    """Every loop in ``stmt``, and between what values the variables around it lie."""
    match stmt:
        case Block(body):
            for child in body:
                yield from _loops(child, ranges)
        case If() | Alloc():
            yield from _loops(stmt.body, ranges)
        case For(var, extent, _, body):
            yield stmt, ranges
            yield from _loops(body, {**ranges, var: (0, _limits(extent, ranges)[1] - 1)})
