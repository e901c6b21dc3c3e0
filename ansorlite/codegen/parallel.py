"""Parallel loops: the body becomes a function that one team of threads runs (libgomp's ``GOMP_parallel``).

Threads take chunks of iterations from a shared counter, so that a slow core delays nobody; with no more iterations than
threads, each takes its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ansorlite.codegen import control
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.context import Context, Place
from ansorlite.codegen.ranges import Interval
from ansorlite.codegen.scope import Scope
from ansorlite.loops.nodes import Buffer, For, Stmt

Body = Callable[[Context, Stmt], None]

#: Chunks per thread: more balance better, fewer touch the counter less.
CHUNKS_PER_THREAD: Final = 8


class _Captures:
    """The addresses and numbers that the team's function needs, in an array on the caller's stack."""

    def __init__(self, c: Context) -> None:
        self._outer = c
        self._slots: list[tuple[str, str]] = []

    def add(self, kind: str, text: str) -> int:
        self._slots.append((kind, text))
        return len(self._slots) - 1

    def store(self) -> str:
        """Write them down; the array's address."""
        b = self._outer.b
        array = b.alloca(f"[{len(self._slots)} x i64], align 64")
        for number, (kind, text) in enumerate(self._slots):
            slot = b.op(f"getelementptr i64, ptr {array}, i64 {number}")
            b.do(f"store {kind} {text}, ptr {slot}, align 8")
        return array


def _load(b: Builder, number: int, kind: str, nbytes: int = 0) -> str:
    slot = b.op(f"getelementptr i64, ptr %captures, i64 {number}")
    known = f", !nonnull {b.module.node('!{}')}, !dereferenceable {b.module.node(f'!{{i64 {nbytes}}}')}" if nbytes else ""
    return b.op(f"load {kind}, ptr {slot}, align 8{known}, !invariant.load {b.module.node('!{}')}")


def emit(c: Context, loop: For, extent: int, body: Body) -> None:
    """Write a parallel loop of constant extent; ``body`` writes the loop's body in a context."""
    captures = _Captures(c)
    name = c.b.module.fresh("team")
    inner = _enter(c, captures, name)
    threads = c.target.threads
    b = inner.b
    b.module.declare("i32 @omp_get_thread_num()")
    inner.thread = b.op(f"zext i32 {b.op('call i32 @omp_get_thread_num()')} to i64")

    def iteration(counter: str) -> None:
        with control.bound(inner, loop.var, counter, Interval(0, extent - 1)):
            body(inner, loop.body)

    if extent <= threads:
        b.module.declare("i32 @omp_get_num_threads()")
        step = b.op(f"zext i32 {b.op('call i32 @omp_get_num_threads()')} to i64")
        control.counted(inner, inner.thread, str(extent), step, False, iteration)
    else:
        _dynamic(inner, captures.add("i64", "0"), extent, max(1, extent // (threads * CHUNKS_PER_THREAD)), iteration)
    b.do("ret void")
    c.b.module.define(name, b.text())
    array = captures.store()
    c.b.module.declare("void @GOMP_parallel(ptr, ptr, i32, i32)")
    c.b.do(f"call void @GOMP_parallel(ptr @{name}, ptr {array}, i32 {min(threads, extent)}, i32 0)")


def _enter(c: Context, captures: _Captures, name: str) -> Context:
    """The context of the team's function: everything known outside is known inside."""
    b = Builder(c.b.module, f"internal void @{name}(ptr noalias %captures) #0")
    workspace = _load(b, captures.add("ptr", c.workspace), "ptr")
    scope = Scope()
    for var, bound in c.scope.variables.items():
        scope.bind(var, bound.text if bound.literal else _load(b, captures.add("i64", bound.text), "i64"))
    places: dict[Buffer, Place] = {}
    for buffer, place in c.places.items():
        pointer = _load(b, captures.add("ptr", place.pointer), "ptr", buffer.nbytes)
        places[buffer] = replace(place, pointer=pointer, depth=0)
    return Context(b, c.target, c.layout, workspace, scope=scope, places=places, ranges=dict(c.ranges))


def _dynamic(c: Context, counter: int, extent: int, chunk: int, iteration: Callable[[str], None]) -> None:
    """Take chunks from the shared counter until none is left."""
    b = c.b
    shared = b.op(f"getelementptr i64, ptr %captures, i64 {counter}")
    take, run, done = b.label("take"), b.label("run"), b.label("all")
    b.jump(take)
    b.start(take)
    begin = b.op(f"atomicrmw add ptr {shared}, i64 {chunk} monotonic, align 8")
    b.branch(b.op(f"icmp slt i64 {begin}, {extent}"), run, done)
    b.start(run)
    if chunk == 1:
        with c.scope.layer(barrier=True):
            iteration(begin)
    else:
        end = b.intrinsic("smin", "i64", 1, b.op(f"add i64 {begin}, {chunk}"), str(extent))
        control.counted(c, begin, end, 1, True, iteration)
    b.jump(take)
    b.start(done)
