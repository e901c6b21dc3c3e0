"""Sums of float16 and bfloat16: made in float32, and rounded once.

A sum in float16 itself would be rounded at every step: it stands still at 2,048 ones, and is infinite beyond 65,504.
"""

from __future__ import annotations

from ansorlite import te
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import elementwise


def wide(value: Expr) -> Expr:
    """``value`` in the dtype that sums of its dtype are made in."""
    return te.cast(value, "float32") if dtypes.is_float(value.dtype) and dtypes.size(value.dtype) < 4 else value


def narrow(total: Tensor, dtype: str) -> Tensor:
    """A sum of wide values as what it is the sum of; itself, if these are no wider."""
    return total if total.dtype == dtype else elementwise(lambda v: te.cast(v, dtype), total, name=total.name)
