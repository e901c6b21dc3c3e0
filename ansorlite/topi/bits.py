"""Operators on the bits of integers."""

from __future__ import annotations

from ansorlite.te import dtypes
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import elementwise


def bitwise_and(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x & y, a, b, name="bitwise_and")


def bitwise_or(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x | y, a, b, name="bitwise_or")


def bitwise_xor(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x ^ y, a, b, name="bitwise_xor")


def bitwise_not(x: Tensor) -> Tensor:
    """Every bit the other way round, of signed and unsigned integers alike."""
    ones = -1 if dtypes.is_signed(x.dtype) else (1 << 8 * dtypes.size(x.dtype)) - 1
    return elementwise(lambda v: v ^ ones, x, name="bitwise_not")


def shift_left(x: Tensor, count: Tensor) -> Tensor:
    return elementwise(lambda v, n: v << n, x, count, name="shift_left")


def shift_right(x: Tensor, count: Tensor) -> Tensor:
    """Signed numbers keep their sign."""
    return elementwise(lambda v, n: v >> n, x, count, name="shift_right")
