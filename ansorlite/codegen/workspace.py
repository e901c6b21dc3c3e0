"""Where temporaries live: stack slots, or offsets into one workspace that the caller provides.

The workspace is a part shared by all threads, then one private part per thread. Buffers that do not live at the same
time share room: offsets follow the nesting of allocations, as on a stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ansorlite.alignment import aligned
from ansorlite.loops.nodes import Alloc, Buffer, Function, Load, Scope, Stmt, Store, children, statements
from ansorlite.loops.visit import loads, stores
from ansorlite.target import Target
from ansorlite.target.masks import masks_natively
from ansorlite.te.index.form import form_of

#: A private buffer up to this size lives on the stack,
STACK_BUFFER: Final = 16 << 10
#: as long as all such buffers of a function stay below this.
STACK_TOTAL: Final = 128 << 10
#: A buffer of so many rows is written by about as many stores as wait in a core for the cache.
PADDED_ROWS: Final = 64


@dataclass
class WorkspaceLayout:
    """Byte offsets of the buffers that live in the workspace; the others of ``stack`` are stack slots.

    Attributes:
        padded: each buffer as it lies in memory, with padding at the end of its rows.
        shared: bytes of the part that all threads see.
        private: bytes of each thread's part.
    """

    padded: Mapping[Buffer, Buffer] = field(default_factory=dict)
    offsets: dict[Buffer, int] = field(default_factory=dict)
    stack: set[Buffer] = field(default_factory=set)
    shared: int = 0
    private: int = 0

    def total(self, threads: int) -> int:
        """Bytes of the whole workspace."""
        return self.shared + threads * self.private


def layout(function: Function, target: Target) -> WorkspaceLayout:
    """Places every temporary of ``function``. Each has room for one vector past its end, which loads may touch."""
    result = WorkspaceLayout(_padded(function, target))
    on_stack = 0

    def place(stmt: Stmt, shared: int, private: int) -> None:
        nonlocal on_stack
        if isinstance(stmt, Alloc):
            buffer = stmt.buffer
            size = aligned(result.padded[buffer].nbytes + target.vector_bytes)
            small = size <= STACK_BUFFER and on_stack + size <= STACK_TOTAL
            if buffer.scope is Scope.GLOBAL:
                result.offsets[buffer] = shared
                shared += size
                result.shared = max(result.shared, shared)
            elif buffer.scope is Scope.REGISTER or small:
                result.stack.add(buffer)
                on_stack += size
            else:
                result.offsets[buffer] = private
                private += size
                result.private = max(result.private, private)
        for child in children(stmt):
            place(child, shared, private)

    place(function.body, 0, 0)
    return result


def _padded(function: Function, target: Target) -> dict[Buffer, Buffer]:
    """Each temporary with the rows that it has in memory.

    Rows of register buffers are whole vectors. So are short ones of small buffers, which are read soon after they were written: a
    load waits for what a masked store has written until it is in the cache (docs/decisions/zeros-in-padding.md). Not where an
    index is more than a sum of variables: a loop that runs through several rows reads one stretch of memory.
    """
    buffers = [stmt.buffer for stmt in statements(function.body) if isinstance(stmt, Alloc)]
    result = {buffer: _in_whole_vectors(buffer, target) for buffer in buffers}
    wider = {buffer for buffer in buffers if result[buffer] is not buffer and buffer.scope is not Scope.REGISTER}
    if wider:
        accesses: list[Load | Store] = [*stores(function.body), *loads(function.body)]
        for access in accesses:
            if access.buffer in wider and not all(form_of(index).over_variables for index in access.indices):
                wider.remove(access.buffer)
                result[access.buffer] = access.buffer
    return result


def _in_whole_vectors(buffer: Buffer, target: Target) -> Buffer:
    if not buffer.shape or buffer.pads:
        return buffer
    row, lanes = buffer.shape[-1], target.lanes(buffer.dtype)
    if buffer.scope is not Scope.REGISTER:
        small = buffer.scope is Scope.LOCAL and row < lanes and buffer.size <= PADDED_ROWS * row
        if not small or not masks_natively(target, [buffer.dtype]):
            return buffer
    unit = min(lanes, 1 << (row - 1).bit_length())
    return replace(buffer, shape=(*buffer.shape[:-1], row + -row % unit)) if row % unit else buffer
