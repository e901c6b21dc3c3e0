"""Rows that several passes read: the last pass asks for the next rows.

The first pass over a row waits for memory while nothing is computed; the others find the row in a cache, and memory waits for
them::

    for i in 0..4096:
        for j in 0..768: sum += x[i, j]
        for j in 0..768: y[i, j] = x[i, j] - sum / 768       # and prefetch x[i + 1, j]

That the next iteration of a loop reads where this one ends is seen from the loops; how the machine fetches what comes from beyond
a core's own caches does not see it, as it follows reads, of which there are none there while the last pass runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ansorlite.alignment import CACHE_LINE
from ansorlite.codegen.architecture import architecture_of
from ansorlite.loops.nodes import Alloc, Block, Buffer, For, Function, LoopKind, Scope, Stmt, statements
from ansorlite.loops.visit import loads, stores
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Var
from ansorlite.te.index.form import Affine, flat
from ansorlite.te.index.ranges import UNBOUNDED, Interval, bounds, span
from ansorlite.te.traversal import free_vars

#: By buffer: how many bytes behind what is read now the next iteration reads.
NextRows: TypeAlias = Mapping[Buffer, int]


def next_rows(function: Function, target: Target) -> Mapping[Stmt, NextRows]:
    """By the part of a loop's body that is the last to read some rows: what the next iteration reads in their place."""
    if target.gpu is not None or not architecture_of(target).ahead:
        return {}
    found: dict[Stmt, dict[Buffer, int]] = {}
    for loop in statements(function.body):
        if isinstance(loop, For) and loop.kind in (LoopKind.SERIAL, LoopKind.PARALLEL):
            for part, buffer, step in _rows_of(loop, target):
                found.setdefault(part, {})[buffer] = step
    return found


def _rows_of(loop: For, target: Target) -> Iterator[tuple[Stmt, Buffer, int]]:
    parts = _parts(loop.body)
    if len(parts) < 2:
        return
    made = {store.buffer for store in stores(loop.body)}
    readers: dict[tuple[Buffer, int], list[Stmt]] = {}
    for part in parts:
        for row in _read(part, loop.var, made):
            readers.setdefault(row, []).append(part)
    for (buffer, step), passes in readers.items():
        nbytes = step * dtypes.size(buffer.dtype)
        far = buffer.nbytes > target.l2 * target.threads
        if len(passes) > 1 and far and CACHE_LINE <= nbytes <= target.l2 // 4:
            yield passes[-1], buffer, nbytes


def _parts(body: Stmt) -> tuple[Stmt, ...]:
    while isinstance(body, Alloc):
        body = body.body
    return body.body if isinstance(body, Block) else ()


def _read(part: Stmt, var: Var, made: set[Buffer]) -> set[tuple[Buffer, int]]:
    """What ``part`` reads in each iteration of ``var``'s loop and nobody makes there, where the next iteration goes on: with the
    elements of an iteration."""
    inner: dict[Expr, Interval] = {
        each.var: (0, bounds(each.extent)[1] - 1) for each in statements(part) if isinstance(each, For)
    }
    found: dict[Buffer, set[tuple[int, float]]] = {}
    for load in loads(part):
        if load.buffer.scope in (Scope.ARGUMENT, Scope.GLOBAL) and load.buffer not in made:
            form = flat(load, load.buffer.strides)
            within = Affine(tuple((term, by) for term, by in form.terms if not inner.keys().isdisjoint(free_vars(term))), 0)
            known = all(term in inner for term, _ in within.terms)
            low, high = span(within, inner) if known else UNBOUNDED
            found.setdefault(load.buffer, set()).add((form.coefficients.get(var, 0), high - low + 1))
    # What several loads read of one buffer is no run.
    alone = [(buffer, *next(iter(each))) for buffer, each in found.items() if len(each) == 1]
    return {(buffer, step) for buffer, step, width in alone if step == width}
