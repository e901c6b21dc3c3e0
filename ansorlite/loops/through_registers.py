"""Copies ahead on GPUs whose copies land where they stand: loaded before a step computes, stored after it::

    for k in 0..16:                                      for k in 0..16:
        await all groups but 0                               await all groups but 0
        group:                                               thread t: r[t] = A[k + 1, t]
            thread t: a[(k + 1) % 2, t] = A[k + 1, t]        thread t: ... a[k % 2, ...] ...
        thread t: ... a[k % 2, ...] ...                      group:
                                                                 thread t: a[(k + 1) % 2, t] = r[t]

So a step does not begin with waiting for memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ansorlite.loops.nodes import (
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    For,
    Function,
    If,
    Load,
    LoopKind,
    Role,
    Scope,
    Stmt,
    Store,
    block,
)
from ansorlite.loops.visit import copied, map_stmt, stores
from ansorlite.target import Target
from ansorlite.te.expr import Const


def through_registers(function: Function, target: Target) -> Function:
    """``function`` with what is fetched in loops kept in registers meanwhile, where ``target`` has no copies that land later."""
    if target.gpu is None or target.gpu.async_copies:
        return function
    body = map_stmt(function.body, _staged)
    return function if body is function.body else replace(function, body=body)


def _staged(stmt: Stmt) -> Stmt | None:
    """A loop that awaits, fetches and computes, with the fetch taken apart; ``None`` for anything else."""
    if not isinstance(stmt, For) or not isinstance(stmt.body, Block):
        return None
    match stmt.body.body:
        case (Await() as wait, FetchGroup(fetch), *rest) if rest and all(map(_straight, _phases(fetch))):
            parts = _Parts()
            loading = parts.loading(copied(fetch, {}), ())
            # The same loops again, with variables of their own.
            storing = map_stmt(copied(loading, {}), parts.storing)
            result: Stmt = replace(stmt, body=block(wait, loading, *rest, FetchGroup(storing)))
            for kept in parts.kept:
                result = Alloc(kept, result)
            return result
    return None


def _phases(stmt: Stmt) -> list[Stmt]:
    match stmt:
        case Block(body):
            return [phase for part in body for phase in _phases(part)]
        case If(_, body):
            return _phases(body)
    return [stmt]


def _straight(phase: Stmt) -> bool:
    """Whether a phase is one of threads, each of which fetches elements in straight-line code: registers have no numbers."""
    if not isinstance(phase, For) or phase.kind is not LoopKind.THREAD:
        return False
    return all(store.role is Role.FETCH for store in stores(phase)) and _written_out(phase.body)


def _written_out(stmt: Stmt) -> bool:
    match stmt:
        case For():
            few = stmt.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED) and isinstance(stmt.extent, Const)
            return few and _written_out(stmt.body)
        case If(_, body):
            return _written_out(body)
        case Block(body):
            return all(map(_written_out, body))
    return isinstance(stmt, Store)


@dataclass
class _Parts:
    """
    Attributes:
        kept: what threads keep, a buffer for each fetch.
        fetches: by these, the fetch.
    """

    kept: list[Buffer] = field(default_factory=list)
    fetches: dict[Buffer, tuple[Store, tuple[For, ...]]] = field(default_factory=dict)

    def loading(self, stmt: Stmt, loops: tuple[For, ...]) -> Stmt:
        """``stmt`` with what is fetched stored to registers; ``loops``: of the thread, and inside of it."""
        match stmt:
            case Block(body):
                return block(*(self.loading(part, loops) for part in body))
            case If(_, body):
                return replace(stmt, body=self.loading(body, loops))
            case For():
                return replace(stmt, body=self.loading(stmt.body, (*loops, stmt)))
            case Store():
                shape = tuple(int(loop.extent.value) for loop in loops if isinstance(loop.extent, Const))
                buffer = Buffer(f"{stmt.buffer.name}_kept", shape, stmt.buffer.dtype, Scope.PRIVATE)
                self.kept.append(buffer)
                self.fetches[buffer] = stmt, loops
                return replace(stmt, buffer=buffer, indices=tuple(loop.var for loop in loops), role=Role.MOVE)
        raise TypeError(f"{type(stmt).__name__} is no part of a fetch")

    def storing(self, stmt: Stmt) -> Stmt | None:
        """The fetch itself, in the place of the store to registers, whose indices are the variables that its loops have here."""
        if not isinstance(stmt, Store) or stmt.buffer not in self.fetches:
            return None
        fetch, loops = self.fetches[stmt.buffer]
        here = dict(zip((loop.var for loop in loops), stmt.indices, strict=True))
        moved = copied(fetch, here)
        assert isinstance(moved, Store)
        return replace(moved, value=Load(stmt.buffer, stmt.indices, stmt.buffer.dtype))
