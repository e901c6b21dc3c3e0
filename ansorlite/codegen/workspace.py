"""Where temporaries live: stack slots, or offsets into one workspace that the caller provides.

The workspace is a part shared by all threads, then one private part per thread. Buffers that do not live at the same
time share room: offsets follow the nesting of allocations, as on a stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ansorlite.alignment import aligned
from ansorlite.loops.nodes import Alloc, Buffer, Function, Scope, Stmt, children
from ansorlite.target import Target

#: A private buffer up to this size lives on the stack,
STACK_BUFFER: Final = 16 << 10
#: as long as all such buffers of a function stay below this.
STACK_TOTAL: Final = 128 << 10


@dataclass
class WorkspaceLayout:
    """Byte offsets of the buffers that live in the workspace; the others of ``stack`` are stack slots.

    Attributes:
        shared: bytes of the part that all threads see.
        private: bytes of each thread's part.
    """

    offsets: dict[Buffer, int] = field(default_factory=dict)
    stack: set[Buffer] = field(default_factory=set)
    shared: int = 0
    private: int = 0

    def total(self, threads: int) -> int:
        """Bytes of the whole workspace."""
        return self.shared + threads * self.private


def layout(function: Function, target: Target) -> WorkspaceLayout:
    """Places every temporary of ``function``. Each has room for one vector past its end, which loads may touch."""
    result = WorkspaceLayout()
    on_stack = 0

    def place(stmt: Stmt, shared: int, private: int) -> None:
        nonlocal on_stack
        if isinstance(stmt, Alloc):
            buffer = stmt.buffer
            size = aligned(buffer.nbytes + target.vector_bytes)
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
