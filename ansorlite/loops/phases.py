"""The phases of a block, and which of them need a barrier before them.

A phase is an outermost loop of the block's threads: within it they run at once, and from phase to phase too unless a barrier is
between the two. There must be one where a phase reads what another thread may have stored since the last barrier, or stores over
what another thread may have read or stored. An await is one by itself; what is fetched is read after its await.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ansorlite.loops.nodes import (
    THREADS,
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    For,
    If,
    Intrinsic,
    Load,
    LoopKind,
    Role,
    Scope,
    Stmt,
    Store,
    children,
    statements,
)
from ansorlite.loops.visit import loads, stores, trips
from ansorlite.machine.matrix import WARP
from ansorlite.te.expr import Expr
from ansorlite.te.index.form import flat
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.traversal import free_vars

#: Scopes of buffers that no other thread sees.
_OWN: Final = (Scope.PRIVATE, Scope.LOCAL, Scope.REGISTER)


def phases(stmt: Stmt) -> Iterator[For]:
    """Those in a statement, in program order."""
    if isinstance(stmt, For) and stmt.kind in THREADS:
        yield stmt
        return
    for child in children(stmt):
        yield from phases(child)


def obstacle(block: For) -> str | None:
    """Why the threads of ``block``, which has phases, cannot run it, as the end of a sentence; ``None``: they can.

    All threads must take one way through it, and nothing may be done by the block as such.
    """
    return _obstacle(block.body)


def _obstacle(stmt: Stmt) -> str | None:
    match stmt:
        case For() if stmt.kind in THREADS:
            return None
        case Store(buffer):
            return f"{buffer.name} is stored in a block with threads, but by none of them"
        case For(extent=decides) | If(cond=decides) if any(True for _ in loads(decides)) and any(phases(stmt)):
            return "what decides whether threads run is loaded"
        case Alloc(buffer) if buffer.scope in (Scope.LOCAL, Scope.REGISTER) and any(phases(stmt)):
            return f"{buffer.name}, of scope {buffer.scope.name}, belongs to a block, not to its threads"
        case Intrinsic():
            return None
    return next((found for child in children(stmt) if (found := _obstacle(child)) is not None), None)


def threads_of(block: Stmt) -> int:
    """How many threads a block needs: what its widest phase does. Warps are whole, however few lanes have something to do."""
    return max((trips(phase) * (WARP if phase.kind is LoopKind.WARP else 1) for phase in phases(block)), default=1)


def lanes_problem(warps: For) -> str | None:
    """Why a GPU cannot run a loop over warps, as the end of a sentence; ``None``: it can."""
    lanes = [loop for loop in phases(warps.body) if loop.kind is LoopKind.LANE]
    if not lanes:
        return "a loop over warps has none over their lanes"
    most = max(map(trips, lanes))
    return f"a loop over lanes has {most} iterations, and a warp {WARP} lanes; split it" if most > WARP else None


def race(phase: For, algebra: IndexAlgebra) -> str | None:
    """That one thread of a phase may load what another one stores in the same phase; ``None``: it cannot be told.

    It is told by the part of an address that depends on the thread: what a phase stores and loads is to be at one and the same.
    The rest is left to the interpreter, which runs threads in any order, and to machines that watch their memory.
    """
    threads = frozenset(loop.var for loop in _threads(phase))
    own = {stmt.buffer for stmt in statements(phase) if isinstance(stmt, Alloc)}

    def part(access: Load | Store) -> frozenset[tuple[Expr, int]]:
        form = algebra.form(flat(access, access.buffer.strides).expr())
        return frozenset((atom, factor) for atom, factor in form.terms if not threads.isdisjoint(free_vars(atom)))

    stored: dict[Buffer, set[frozenset[tuple[Expr, int]]]] = {}
    for store in stores(phase.body):
        if store.buffer.scope not in _OWN and store.buffer not in own:
            stored.setdefault(store.buffer, set()).add(part(store))
    for load in loads(phase.body):
        if load.buffer in stored and stored[load.buffer] != {part(load)}:
            return f"a thread may load an element of {load.buffer.name} that another one stores in the same phase"
    return None


def _threads(stmt: Stmt) -> Iterator[For]:
    for each in statements(stmt):
        if isinstance(each, For) and each.kind in THREADS and trips(each) > 1:
            yield each


@dataclass(frozen=True)
class _Since:
    """What was done since the last barrier, on some way here."""

    read: frozenset[Buffer] = frozenset()
    written: frozenset[Buffer] = frozenset()

    def join(self, other: _Since) -> _Since:
        return _Since(self.read | other.read, self.written | other.written)

    def conflicts(self, phase: _Since) -> bool:
        return not (self.written.isdisjoint(phase.read | phase.written) and self.read.isdisjoint(phase.written))


def barriers(block: For) -> frozenset[For]:
    """The phases of ``block``, a BLOCK loop, that need a barrier before them: on any of the ways that lead there."""
    needed: frozenset[For] = frozenset()
    while True:
        walk = _Walk(needed)
        walk.statement(block.body, _Since())
        if walk.needed == needed:
            return needed
        needed = walk.needed


class _Walk:
    """Follows a block in program order; a loop is walked again from its end.

    Attributes:
        needed: the phases with a barrier, as far as is known.
    """

    def __init__(self, needed: frozenset[For]) -> None:
        self.needed = needed

    def statement(self, stmt: Stmt, since: _Since) -> _Since:
        """What was done since the last barrier when ``stmt`` has run."""
        match stmt:
            case For() if stmt.kind in THREADS:
                return self.phase(stmt, since)
            case For():
                once = since.join(self.statement(stmt.body, since))
                return once.join(self.statement(stmt.body, once))
            case If():
                return since.join(self.statement(stmt.body, since))
            case Alloc() | FetchGroup():
                return self.statement(stmt.body, since)
            case Await():
                return _Since()
            case Block(body):
                for part in body:
                    since = self.statement(part, since)
                return since
            case _:
                # Intrinsics of threads touch what is their own; nothing else has effects here.
                return since

    def phase(self, loop: For, since: _Since) -> _Since:
        does = _Since(
            frozenset(load.buffer for load in loads(loop.body) if load.buffer.scope not in _OWN),
            frozenset(store.buffer for store in stores(loop.body) if store.buffer.scope not in _OWN),
        )
        if since.conflicts(does):
            self.needed |= {loop}
        # Whoever reads what is fetched here waits for it; what else is in its buffer stays as it is.
        here = stores(loop.body)
        lands = frozenset(store.buffer for store in here if store.role is not Role.FETCH and store.buffer.scope not in _OWN)
        does = replace(does, written=lands)
        return does if loop in self.needed else since.join(does)
