"""Sums of float16 and bfloat16: made in float32, and rounded once.

A sum in float16 itself would be rounded at every step: it stands still at 2,048 ones, and is infinite beyond 65,504. A maximum
would not, but no processor compares bfloat16.
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


def comparable(value: Expr) -> Expr:
    """``value`` in the dtype that maxima of its dtype are made in.

    That is float32 of bfloat16: what was compared is then not converted again at each comparison. float16 stays, as there are
    processors that compare it.
    """
    return wide(value) if value.dtype == "bfloat16" else value


def narrow(total: Tensor, dtype: str) -> Tensor:
    """What was made of wide values, in the dtype that these had; itself, if they are no wider."""
    return total if total.dtype == dtype else elementwise(lambda v: te.cast(v, dtype), total, name=total.name)
