"""Fewer and plainer statements of the same meaning: on the path of every program that is compiled."""

from __future__ import annotations

from dataclasses import replace

from ansorlite.loops.nodes import Alloc, Block, For, Function, If, Load, Prefetch, Stmt, Store, block
from ansorlite.te.expr import Const
from ansorlite.te.index.simplify import IndexAlgebra


def simplify(function: Function) -> Function:
    """``function`` without loops of one iteration, decided conditions and redundant index arithmetic.

    Equal index expressions become the same node. Arithmetic on float values is never changed. One pass over the
    statements; each distinct expression is looked at once.
    """
    return Function(function.name, function.params, function.outputs, _simplified(function.body, IndexAlgebra()))


def _simplified(stmt: Stmt, algebra: IndexAlgebra) -> Stmt:
    """``stmt``, or an empty block if it does nothing."""
    match stmt:
        case Block(body):
            return block(*(_simplified(child, algebra) for child in body))
        case For():
            return _loop(stmt, algebra)
        case If(cond, body):
            simple = algebra.simplify(cond)
            if isinstance(simple, Const):
                return _simplified(body, algebra) if simple.value else block()
            inner = _simplified(body, algebra)
            return inner if _is_empty(inner) else If(simple, inner)
        case Store(_, indices, value):
            return replace(stmt, indices=tuple(map(algebra.simplify, indices)), value=algebra.simplify(value))
        case Alloc(buffer, body):
            inner = _simplified(body, algebra)
            return inner if _is_empty(inner) else Alloc(buffer, inner)
        case Prefetch(load):
            simple_load = algebra.simplify(load)
            assert isinstance(simple_load, Load)
            return Prefetch(simple_load, stmt.stage)
    raise TypeError(f"not a statement of the loop IR: {stmt!r}")


def _loop(loop: For, algebra: IndexAlgebra) -> Stmt:
    extent = algebra.simplify(loop.extent)
    if isinstance(extent, Const) and extent.value <= 0:
        return block()
    if isinstance(extent, Const) and extent.value == 1:
        algebra.bind_value(loop.var, 0)
        return _simplified(loop.body, algebra)
    algebra.bind(loop.var, extent)
    body = _simplified(loop.body, algebra)
    return body if _is_empty(body) else For(loop.var, extent, loop.kind, body, loop.lanes)


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Block) and not stmt.body
