"""A GPU's program as one for CPUs: as loops are in program order, only kinds and scopes change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ansorlite.loops.nodes import (
    BINDINGS,
    Alloc,
    Await,
    Buffer,
    FetchGroup,
    For,
    Function,
    Intrinsic,
    Load,
    LoopKind,
    Role,
    Scope,
    Stmt,
    Store,
    block,
    statements,
)
from ansorlite.loops.visit import map_exprs, map_stmt
from ansorlite.target import Target
from ansorlite.te.expr import Expr
from ansorlite.te.traversal import rewrite

_KINDS: Final = {LoopKind.BLOCK: LoopKind.PARALLEL} | dict.fromkeys(BINDINGS[1:], LoopKind.SERIAL)
_SCOPES: Final = {Scope.SHARED: Scope.LOCAL, Scope.PRIVATE: Scope.LOCAL}


def emulate(function: Function, target: Target) -> Function:
    """Blocks in parallel, the threads of each one after another, phase by phase; what was theirs is the block's own.

    Nothing but what the loops promise each other is lost: a function without such loops stays as it is.
    """
    del target
    temporaries = [stmt.buffer for stmt in statements(function.body) if isinstance(stmt, Alloc)]
    others = {buffer: replace(buffer, scope=_SCOPES[buffer.scope]) for buffer in temporaries if buffer.scope in _SCOPES}
    body = map_stmt(map_exprs(function.body, lambda expr: _loads(expr, others)), lambda stmt: _statement(stmt, others))
    return replace(function, body=body)


def _loads(expr: Expr, others: Mapping[Buffer, Buffer]) -> Expr:
    def rule(node: Expr) -> Expr | None:
        if isinstance(node, Load) and node.buffer in others:
            return Load(others[node.buffer], node.indices, node.dtype)
        return None

    return rewrite(expr, rule) if others else expr


def _statement(stmt: Stmt, others: Mapping[Buffer, Buffer]) -> Stmt | None:
    match stmt:
        case For() if stmt.kind in _KINDS:
            return replace(stmt, kind=_KINDS[stmt.kind])
        case Store() if stmt.buffer in others:
            role = Role.COMPUTE if stmt.role is Role.FETCH else stmt.role
            return replace(stmt, buffer=others[stmt.buffer], role=role)
        case Alloc() if stmt.buffer in others:
            return replace(stmt, buffer=others[stmt.buffer])
        case Intrinsic() | FetchGroup():
            return stmt.body
        case Await():
            return block()
    return None
