"""What a reduction starts from and how it steps."""

from __future__ import annotations

import numpy as np

from ansorlite.te import dtypes
from ansorlite.te.expr import Const, Expr, binary, const
from ansorlite.te.ops import COMBINE, ReduceOp


def identity(op: ReduceOp, dtype: str) -> Const:
    """The value that ``op`` folds onto without a trace."""
    if op is ReduceOp.SUM:
        return const(0, dtype)
    if op is ReduceOp.PROD:
        return const(1, dtype)
    smallest = op is ReduceOp.MAX
    if dtype == "bool":
        return const(not smallest, dtype)
    if dtypes.is_float(dtype):
        return const(-np.inf if smallest else np.inf, dtype)
    info = np.iinfo(dtype)
    return const(int(info.min) if smallest else int(info.max), dtype)


def combine(op: ReduceOp, accumulated: Expr, value: Expr) -> Expr:
    """One step of the reduction."""
    return binary(COMBINE[op], accumulated, value)
