"""What products of float32 multiply."""

from __future__ import annotations

from typing import Final

from ansorlite.errors import ArgumentError

#: The dtypes, the default first. bfloat16 has the exponents of float32: nothing overflows that did not.
PRECISIONS: Final = ("float32", "bfloat16")


def check_precision(precision: object) -> None:
    """
    Raises:
        ArgumentError: it is none of :data:`PRECISIONS`.
    """
    if precision not in PRECISIONS:
        raise ArgumentError(f"precision is {precision!r}; it must be {' or '.join(map(repr, PRECISIONS))}")
