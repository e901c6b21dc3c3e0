"""Where the elements of swizzled buffers lie: chunks of 16 bytes of a row come in another order in each row.

Threads that read one column of many rows, and those that read one row, both find different banks of shared memory::

    S[k, i * 4 + v]      ->      S[k, (i ^ k % 8) * 4 + v]

Shorter rows than all banks together have change their order once for as many of them as fill the banks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ansorlite.loops.nodes import Alloc, Buffer, Function, Load, Stmt, Store, statements
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import map_exprs, map_stmt
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Expr
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import rewrite

#: Bytes that stay together: what a thread loads, or copies, at most by one instruction.
CHUNK: Final = 16
#: Chunks that all banks of shared memory together hold.
_BANKS: Final = 8


def swizzle(function: Function, target: Target) -> Function:
    """``function`` with its swizzled buffers indexed by where their elements lie."""
    del target
    allocated = (stmt.buffer for stmt in statements(function.body) if isinstance(stmt, Alloc))
    others = {buffer: replace(buffer, swizzle=1) for buffer in allocated if buffer.swizzle > 1}
    if not others:
        return function
    body = map_stmt(map_exprs(function.body, lambda expr: _loads(expr, others)), lambda stmt: _statement(stmt, others))
    return simplify(replace(function, body=body))


def _loads(expr: Expr, others: Mapping[Buffer, Buffer]) -> Expr:
    def rule(node: Expr) -> Expr | None:
        if isinstance(node, Load) and node.buffer in others:
            return Load(others[node.buffer], _placed(node.buffer, node.indices), node.dtype)
        return None

    return rewrite(expr, rule)


def _statement(stmt: Stmt, others: Mapping[Buffer, Buffer]) -> Stmt | None:
    match stmt:
        case Store() if stmt.buffer in others:
            return replace(stmt, buffer=others[stmt.buffer], indices=_placed(stmt.buffer, stmt.indices))
        case Alloc() if stmt.buffer in others:
            return replace(stmt, buffer=others[stmt.buffer])
    return None


def _placed(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    *outer, row, column = indices
    chunk = CHUNK // dtypes.size(buffer.dtype)
    together = max(1, _BANKS * chunk // buffer.strides[-2])
    turn = (row // together) % buffer.swizzle
    number = Binary(BinaryOp.BITXOR, column // chunk, turn, column.dtype)
    return (*outer, row, number * chunk + column % chunk)
