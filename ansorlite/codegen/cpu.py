"""What functions for CPUs have of their own: a team of threads, stack slots and a workspace."""

from __future__ import annotations

from typing import Final

from ansorlite.codegen import memory, parallel, types
from ansorlite.codegen.context import Body, Context, Dialect, Storage
from ansorlite.loops.nodes import Await, Buffer, FetchGroup, For, Intrinsic, LoopKind, Scope, Store
from ansorlite.te.expr import Const


class _Cpu:
    def storage(self, c: Context, buffer: Buffer) -> Storage:
        inside, register = c.layout.padded[buffer], buffer.scope is Scope.REGISTER
        row = inside.shape[-1] if inside.shape else 1
        if buffer not in c.layout.stack:
            place = Storage(_workspace_pointer(c, buffer), inside.strides, 0, c.b.module.new_scope(), padded=True, row=row)
            memory.zero_padding(c.b.op, c.b.do, place, buffer, inside, c.target)
            return place
        pointer = c.b.at_entry(f"alloca [{inside.size + c.target.lanes(buffer.dtype)} x {types.MEMORY[buffer.dtype]}], align 64")
        place = Storage(pointer, inside.strides, 0, None, padded=True, register=register, row=row)
        if not register:
            memory.zero_padding(c.b.at_entry, c.b.do_at_entry, place, buffer, inside, c.target)
        return place

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
