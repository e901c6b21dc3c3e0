"""What became of one test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Way(Enum):
    """How a test went."""

    NATIVE = "native"
    FALLBACK = "fallback"
    FAILING = "failing"


@dataclass(frozen=True)
class Result:
    """What became of one test.

    Attributes:
        name: of the test.
        operator: that it is for.
        plain: whether all inputs and outputs are tensors of float32, int32, int64 or bool.
        way: how it went.
        constant: whether no kernel was left to run, as all was known beforehand.
        hosts: operators that ran in Python, each with the reason.
        error: why it failed.
    """

    name: str
    operator: str
    plain: bool
    way: Way
    constant: bool = False
    hosts: tuple[tuple[str, str], ...] = ()
    error: str = ""
