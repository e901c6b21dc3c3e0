"""Intrinsics with their bodies: what they do, in plain loops."""

from __future__ import annotations

from ansorlite.loops.nodes import Alloc, Buffer, Fold, For, Intrinsic, Load, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.te.expr import Binary, Const, Expr, Var
from ansorlite.te.numeric import identity
from ansorlite.te.ops import COMBINE, ReduceOp


def fold(op: ReduceOp, source: Buffer, result: Buffer, width: int) -> Intrinsic:
    """:class:`Fold` with its body: one group after another.

    Args:
        source, result: PRIVATE, one element for each thread.
    """
    total = Buffer("total", (1,), source.dtype, Scope.LOCAL)
    group, lane, receiver = Var("group"), Var("lane"), Var("receiver")
    zero = index(0)

    def whole(thread: Expr) -> Stmt:
        joined = Binary(COMBINE[op], Load(total, (zero,), total.dtype), Load(source, (thread,), source.dtype), source.dtype)
        return Store(total, (zero,), joined, source.name, Role.MOVE)

    start = Const(identity(op, source.dtype), source.dtype)
    body = block(
        Store(total, (zero,), start, source.name, Role.MOVE),
        For(lane, index(width), LoopKind.SERIAL, whole(group * width + lane)),
        For(
            receiver,
            index(width),
            LoopKind.SERIAL,
            Store(result, (group * width + receiver,), Load(total, (zero,), total.dtype), source.name, Role.MOVE),
        ),
    )
    groups = For(group, index(source.shape[0] // width), LoopKind.SERIAL, Alloc(total, body))
    return Intrinsic(Fold(op, source, result, width), groups)
