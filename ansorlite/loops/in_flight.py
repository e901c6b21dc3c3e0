"""What was fetched and has not landed yet: until then nobody touches it.

A block is followed in program order, with the numbers of the serial loops around its groups and awaits. Where a fetch goes is
told by its first index, the slot of a ring; where that is not known before the block runs it may be any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ansorlite.loops.nodes import (
    THREADS,
    Await,
    Buffer,
    FetchGroup,
    For,
    If,
    Intrinsic,
    Load,
    Role,
    Stmt,
    Store,
    children,
    index,
    statements,
)
from ansorlite.loops.visit import loads, stores
from ansorlite.once import once_for_each
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.traversal import free_vars, substitute


def touched_in_flight(block: For) -> str | None:
    """What the threads of ``block`` touch though it may not have landed, as a sentence; ``None``: nothing."""
    if not _waits(block):
        return None
    return next(_Walk(frozenset(s.buffer for s in stores(block.body) if s.role is Role.FETCH)).statement(block.body), None)


@once_for_each
def _waits(stmt: Stmt) -> bool:
    """Whether groups or awaits are in a statement."""
    return any(isinstance(each, FetchGroup | Await) for each in statements(stmt))


@dataclass
class _Walk:
    """
    Attributes:
        fetched: the buffers that something is fetched into.
        values: of the variables of loops around.
        groups: what those have fetched that may not have landed, the last one last; a slot that is not known is ``None``.
    """

    fetched: frozenset[Buffer]
    values: dict[Var, int] = field(default_factory=dict)
    groups: list[set[tuple[Buffer, int | None]]] = field(default_factory=list)

    def statement(self, stmt: Stmt) -> Iterator[str]:
        """Everything that is wrong in ``stmt``."""
        match stmt:
            case For() if stmt.kind in THREADS:
                yield from self.phase(stmt)
            case Intrinsic() | Store():
                yield from self.phase(stmt)
            case For() if _waits(stmt):
                count = self.number(stmt.extent)
                if count is None:
                    yield f"how often loop {stmt.var.name} waits for what was fetched cannot be told"
                    return
                for number in range(count):
                    self.values[stmt.var] = number
                    yield from self.statement(stmt.body)
                del self.values[stmt.var]
            case If(cond, body):
                holds = self.number(cond)
                if holds is None and _waits(stmt):
                    yield "whether something is fetched, or waited for, cannot be told"
                elif holds is None or holds:
                    yield from self.statement(body)
            case FetchGroup(body):
                self.groups.append(set())
                yield from self.statement(body)
            case Await(pending):
                del self.groups[: max(len(self.groups) - pending, 0)]
            case _:
                for child in children(stmt):
                    yield from self.statement(child)

    def phase(self, stmt: Stmt) -> Iterator[str]:
        touches, fetches = _accesses(stmt)
        for access in (*touches, *fetches):
            if access.buffer not in self.fetched:
                continue
            slot = self.slot(access)
            for buffer, other in (each for group in self.groups for each in group):
                if buffer is access.buffer and (slot is None or other is None or slot == other):
                    yield f"an element of {buffer.name} is touched that was fetched, but may not have landed yet"
        if self.groups:
            self.groups[-1] |= {(store.buffer, self.slot(store)) for store in fetches}

    def slot(self, access: Load | Store) -> int | None:
        return self.number(access.indices[0]) if access.indices else None

    def number(self, expr: Expr) -> int | None:
        if not free_vars(expr) <= self.values.keys():
            return None
        if not isinstance(expr, Const):
            expr = IndexAlgebra().simplify(substitute(expr, {var: index(value) for var, value in self.values.items()}))
        return int(expr.value) if isinstance(expr, Const) else None


@once_for_each
def _accesses(stmt: Stmt) -> tuple[tuple[Load | Store, ...], tuple[Store, ...]]:
    """What a phase loads and stores, and what it fetches; each slot once."""
    ordinary: dict[tuple[Buffer, Expr | None], Load | Store] = {}
    fetched: dict[tuple[Buffer, Expr | None], Store] = {}
    for load in loads(stmt):
        ordinary.setdefault((load.buffer, load.indices[0] if load.indices else None), load)
    for store in stores(stmt):
        key = store.buffer, store.indices[0] if store.indices else None
        if store.role is Role.FETCH:
            fetched.setdefault(key, store)
        else:
            ordinary.setdefault(key, store)
    return tuple(ordinary.values()), tuple(fetched.values())
