"""Softmax and its logarithm, over one or several dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite import te
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import elementwise
from ansorlite.topi.reduction import wide_max, wide_sum
from ansorlite.topi.wide import wide


def softmax(x: Tensor, *, axes: Sequence[int] = (-1,)) -> Tensor:
    """``exp(x) / sum(exp(x))`` over ``axes``, shifted by the maximum so that nothing overflows.

    A row is multiplied by the reciprocal of its sum: one more rounding, and one division a row instead of one an element,
    which costs as much as the exponential.
    """
    peak = wide_max(x, axes=axes, keepdims=True)
    shifted = elementwise(lambda v, m: te.exp(wide(v) - wide(m)), x, peak, name="softmax_exp")
    total = wide_sum(shifted, axes=axes, keepdims=True)
    return elementwise(lambda e, s: te.cast(e * (1.0 / s), x.dtype), shifted, total, name="softmax")


def log_softmax(x: Tensor, *, axes: Sequence[int] = (-1,)) -> Tensor:
    """``log(softmax(x))`` over ``axes``."""
    peak = wide_max(x, axes=axes, keepdims=True)
    shifted = elementwise(lambda v, m: te.exp(wide(v) - wide(m)), x, peak, name="softmax_exp")
    total = wide_sum(shifted, axes=axes, keepdims=True)
    return elementwise(lambda v, m, s: te.cast(wide(v) - wide(m) - te.log(s), x.dtype), x, peak, total, name="log_softmax")
