"""Fewer and plainer statements of the same meaning: on the path of every program that is compiled."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from ansorlite.loops.nodes import (
    BINDINGS,
    Alloc,
    Await,
    Block,
    FetchGroup,
    For,
    Function,
    If,
    Intrinsic,
    Load,
    Prefetch,
    Stmt,
    Store,
    block,
)
from ansorlite.te.expr import Const, Var
from ansorlite.te.index.simplify import IndexAlgebra


def simplify(function: Function, kept: Container[Var] = frozenset()) -> Function:
    """``function`` without loops of one iteration, except over the variables ``kept``, decided conditions and redundant index
    arithmetic.

    Equal index expressions become the same node. Arithmetic on float values is never changed. One pass over the
    statements; each distinct expression is looked at once.
    """
    return Function(function.name, function.params, function.outputs, _Simplifier(kept).statement(function.body))


class _Simplifier:
    def __init__(self, kept: Container[Var]) -> None:
        self.kept = kept
        self.algebra = IndexAlgebra()

    def statement(self, stmt: Stmt) -> Stmt:
        """``stmt``, or an empty block if it does nothing."""
        simple = self.algebra.simplify
        match stmt:
            case Block(body):
                return block(*map(self.statement, body))
            case For():
                return self.loop(stmt)
            case If(cond, body):
                decided = simple(cond)
                if isinstance(decided, Const):
                    return self.statement(body) if decided.value else block()
                inner = self.statement(body)
                return inner if _is_empty(inner) else replace(stmt, cond=decided, body=inner)
            case Store(_, indices, value):
                return replace(stmt, indices=tuple(map(simple, indices)), value=simple(value))
            case Alloc(buffer, body):
                inner = self.statement(body)
                return inner if _is_empty(inner) else Alloc(buffer, inner)
            case Prefetch(load):
                fetched = simple(load)
                assert isinstance(fetched, Load)
                return Prefetch(fetched, stmt.stage)
            case Intrinsic(does, body):
                return Intrinsic(does, self.statement(body))
            case FetchGroup(body):
                # One without anything in it counts among those that are pending.
                return FetchGroup(self.statement(body))
            case Await():
                return stmt
        raise TypeError(f"not a statement of the loop IR: {stmt!r}")

    def loop(self, loop: For) -> Stmt:
        extent = self.algebra.simplify(loop.extent)
        if isinstance(extent, Const) and extent.value <= 0:
            return block()
        # Threads and blocks are such even where there is only one.
        if isinstance(extent, Const) and extent.value == 1 and loop.kind not in BINDINGS:
            self.algebra.bind_value(loop.var, 0)
            if loop.var not in self.kept:
                return self.statement(loop.body)
        else:
            self.algebra.bind(loop.var, extent)
        body = self.statement(loop.body)
        return body if _is_empty(body) else For(loop.var, extent, loop.kind, body, loop.lanes)


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Block) and not stmt.body
