"""Loops and branches of LLVM: blocks, counters, and the scope layers that go with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ansorlite.codegen import prefetch
from ansorlite.codegen.builder import Slot
from ansorlite.codegen.context import Context, Counter
from ansorlite.loops.nodes import Buffer, For, Stmt
from ansorlite.loops.visit import stores
from ansorlite.once import once_for_each
from ansorlite.te.expr import Var
from ansorlite.te.index.ranges import Interval


def counted(c: Context, begin: str, end: str, step: int, runs: bool, loop: For, body: Callable[[str], None]) -> None:
    """``for i in range(begin, end, step): body(i)``.

    Args:
        begin, end: int64 operands.
        runs: whether it is known to run at least once.
        loop: the loop of which this is all or a part.
        body: writes the body, given the name of ``i``; it runs within a layer of its own.
    """
    written = stored(loop)
    c.versions.update(written)
    c.registers.flush()
    b = c.b
    head, latch, done = b.label("loop"), b.label("latch"), b.label("done")
    counter, following = f"%{head}.i", f"%{head}.next"
    before, slot = b.block, b.slot()
    if runs:
        b.jump(head)
    else:
        b.branch(b.op(f"icmp slt i64 {begin}, {end}"), head, done)
    b.start(head)
    b.do(f"{counter} = phi i64 [ {begin}, %{before} ], [ {following}, %{latch} ]")
    phis = b.slot()
    increments: Slot = []
    with c.scope.inside(slot, written if runs else None):
        around, known = c.loops, begin.isdecimal()
        trips = -((int(begin) - int(end)) // step) if known and end.isdecimal() else math.inf
        c.loops = (*around, (c.scope.barrier, trips))
        if known:
            c.counters[counter] = Counter(int(begin), step, before, latch, c.scope.barrier, phis, increments)
        body(counter)
        if counter in c.counters:
            prefetch.emit(c, c.counters[counter])
        c.loops = around
    c.registers.flush()
    b.jump(latch)
    b.start(latch)
    b.add(increments)
    b.do(f"{following} = add nsw i64 {counter}, {step}")
    b.branch(b.op(f"icmp slt i64 {following}, {end}"), head, done)
    b.start(done)


@once_for_each
def stored(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers that ``stmt`` stores to."""
    return frozenset(node.buffer for node in stores(stmt))


@contextmanager
def conditional(c: Context, condition: str) -> Iterator[None]:
    """What is written within runs only if the scalar ``condition`` holds."""
    then, after = c.b.label("then"), c.b.label("after")
    c.registers.flush()
    slot = c.b.slot()
    c.b.branch(condition, then, after)
    c.b.start(then)
    with c.scope.inside(slot):
        yield
    c.registers.flush()
    c.b.jump(after)
    c.b.start(after)


class bound:  # noqa: N801 (used as a function is: a class is entered in half the time of a generator)
    """A loop variable has a value, in a layer of its own, for the time of a ``with``."""

    __slots__ = ("_c", "_outer", "_text", "_values", "_var")

    def __init__(self, c: Context, var: Var, text: str, values: Interval) -> None:
        self._c = c
        self._var = var
        self._text = text
        self._values = values
        self._outer = 0

    def __enter__(self) -> None:
        self._outer = self._c.scope.push(False)
        self._c.scope.bind(self._var, self._text)
        self._c.ranges[self._var] = self._values

    def __exit__(self, *_: object) -> None:
        self._c.scope.pop(self._outer)
        # A parallel loop captures every variable that is bound: one of a loop that has ended has no value any more.
        del self._c.scope.variables[self._var]
