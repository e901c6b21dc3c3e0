"""Powers whose exponent is a small multiple of 1/4: products and square roots."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final, TypeVar

T = TypeVar("T")

#: Rounding errors grow with the number of factors.
_LARGEST: Final = 4.0


def has_products(exponent: float) -> bool:
    """Whether :func:`by_products` knows the exponent."""
    return abs(exponent) <= _LARGEST and (4.0 * exponent).is_integer()


def by_products(
    exponent: float,
    x: T,
    *,
    one: T,
    multiply: Callable[[T, T], T],
    root: Callable[[T], T],
    invert: Callable[[T], T],
) -> T:
    """``x ** exponent`` by the operations given: of x >= 0, and of any x where the exponent is whole.

    No intermediate result overflows, or loses bits to underflow, unless the power does.

    >>> by_products(2.75, 16.0, one=1.0, multiply=float.__mul__, root=lambda v: v**0.5, invert=lambda v: 1.0 / v)
    2048.0
    """
    whole, quarters = divmod(round(4.0 * abs(exponent)), 4)
    if exponent < -1.0:
        # The inverse of a product that overflows would be 0 where the power is denormal.
        x = invert(x)
    factors: list[T] = []
    square = x
    while whole:
        if whole & 1:
            factors.append(square)
        whole >>= 1
        if whole:
            square = multiply(square, square)
    if quarters:
        half = root(x)
        if quarters & 2:
            factors.append(half)
        if quarters & 1:
            factors.append(root(half))
    result = reduce(multiply, factors) if factors else one
    return invert(result) if -1.0 <= exponent < 0.0 else result
