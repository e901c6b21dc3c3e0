"""What a reduction starts from and how it steps, as expressions."""

from __future__ import annotations

from ansorlite.te import numeric
from ansorlite.te.expr import Const, Expr, binary, const
from ansorlite.te.ops import COMBINE, ReduceOp


def identity(op: ReduceOp, dtype: str) -> Const:
    """The value that ``op`` folds onto without a trace."""
    return const(numeric.identity(op, dtype).item(), dtype)


def combine(op: ReduceOp, accumulated: Expr, value: Expr) -> Expr:
    """One step of the reduction."""
    return binary(COMBINE[op], accumulated, value)
