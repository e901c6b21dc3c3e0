"""Parallel loops: the body becomes a function that one team of threads runs (``codegen/team.py``).

Threads take chunks of iterations, more chunks than threads, so that a slow core delays nobody; with few iterations, each is
a chunk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ansorlite.codegen import control, matrix_tile, streaming, team
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.context import Body, Context, Storage
from ansorlite.codegen.scope import LayerStack
from ansorlite.loops.nodes import Buffer, For

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
        array = b.at_entry(f"alloca [{len(self._slots)} x i64], align 64")
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
    c.registers.flush()
    c.versions.update(control.stored(loop))
    captures = _Captures(c)
    name = c.b.module.fresh("team")
    inner = _enter(c, captures, name)
    threads = c.target.threads
    longest = max(1, extent // (threads * CHUNKS_PER_THREAD))

    def iteration(counter: str) -> None:
        with control.bound(inner, loop.var, counter, (0, extent - 1)):
            body(inner, loop.body)

    if longest == 1:
        with inner.scope.inside(inner.b.slot(), control.stored(loop)):
            iteration("%begin")
    else:
        control.counted(inner, "%begin", "%end", 1, True, loop, iteration)
    streaming.fence(inner)
    matrix_tile.release(inner)
    inner.b.do("ret void")
    c.b.module.define(name, inner.b.text())
    array = captures.store()
    c.b.module.declare(f"void @{team.RUN}(ptr, ptr, i64, i64, i64)")
    chunks = -(-extent // longest)
    c.b.do(f"call void @{team.RUN}(ptr @{name}, ptr {array}, i64 {extent}, i64 {chunks}, i64 {threads})")


def _enter(c: Context, captures: _Captures, name: str) -> Context:
    """The context of the team's function: everything known outside is known inside."""
    b = Builder(c.b.module, f"internal void @{name}(ptr noalias %captures, i64 %begin, i64 %end, i64 %thread) #0")
    workspace = _load(b, captures.add("ptr", c.workspace), "ptr")
    scope = LayerStack()
    for var, bound in c.scope.variables.items():
        scope.bind(var, bound.text if bound.value is not None else _load(b, captures.add("i64", bound.text), "i64"))
    places: dict[Buffer, Storage] = {}
    for buffer, place in c.places.items():
        pointer = _load(b, captures.add("ptr", place.pointer), "ptr", buffer.nbytes)
        places[buffer] = replace(place, pointer=pointer, depth=0)
    ranges, readers = dict(c.ranges), c.last_readers
    return Context(b, c.target, c.layout, workspace, c.dialect, "%thread", scope, places, ranges, last_readers=readers)
