"""What functions for CPUs have of their own: a team of threads, stack slots and a workspace."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ansorlite.codegen import parallel, types
from ansorlite.codegen.context import Body, Context, Dialect, Storage
from ansorlite.loops.nodes import Await, Buffer, FetchGroup, For, Intrinsic, LoopKind, Scope, Store
from ansorlite.target import Target
from ansorlite.te.expr import Const


class _Cpu:
    def storage(self, c: Context, buffer: Buffer) -> Storage:
        element, slack = types.MEMORY[buffer.dtype], c.target.lanes(buffer.dtype)
        if buffer not in c.layout.stack:
            return Storage(_workspace_pointer(c, buffer), buffer.strides, 0, c.b.module.new_scope(), padded=True)
        register = buffer.scope is Scope.REGISTER
        inside = _padded(buffer, c.target) if register else buffer
        pointer = c.b.at_entry(f"alloca [{inside.size + slack} x {element}], align 64")
        row = inside.shape[-1] if inside.shape else 1
        return Storage(pointer, inside.strides, 0, None, padded=True, register=register, row=row)

    def loop(self, c: Context, loop: For, body: Body) -> bool:
        """Parallel loops are for the team; loops bound to what a GPU has run one iteration after another."""
        if loop.kind is not LoopKind.PARALLEL or c.target.threads == 1:
            return False
        assert isinstance(loop.extent, Const)
        extent = int(loop.extent.value)
        if extent <= 1:
            return False
        parallel.emit(c, loop, extent, body)
        return True

    def intrinsic(self, c: Context, stmt: Intrinsic, body: Body) -> None:
        body(c, stmt.body)

    def fetch(self, c: Context, stmt: Store) -> bool:
        """A core's copies are its own instructions: they land where they stand."""
        del c, stmt
        return False

    def group(self, c: Context, stmt: FetchGroup, body: Body) -> None:
        body(c, stmt.body)

    def wait(self, c: Context, stmt: Await) -> None:
        """Nothing is on its way."""


CPU: Final[Dialect] = _Cpu()


def _padded(buffer: Buffer, target: Target) -> Buffer:
    """A register buffer with its rows padded to whole vectors, so that tails are whole vectors too."""
    if not buffer.shape:
        return buffer
    row = buffer.shape[-1]
    unit = min(target.lanes(buffer.dtype), 1 << (row - 1).bit_length())
    return replace(buffer, shape=(*buffer.shape[:-1], -(-row // unit) * unit))


def _workspace_pointer(c: Context, buffer: Buffer) -> str:
    offset = c.layout.offsets[buffer]
    with c.b.at(c.scope.slot(0)):
        if buffer.scope is not Scope.GLOBAL:
            offset += c.layout.shared
            if c.thread != "0" and c.layout.private:
                mine = c.b.op(f"mul i64 {c.thread}, {c.layout.private}")
                base = c.b.op(f"getelementptr i8, ptr {c.workspace}, i64 {mine}")
                return c.b.op(f"getelementptr i8, ptr {base}, i64 {offset}")
        return c.b.op(f"getelementptr i8, ptr {c.workspace}, i64 {offset}")
