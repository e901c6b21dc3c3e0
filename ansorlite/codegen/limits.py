"""What a program may need at most, for a machine to be asked to compile and run it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Of the programs of a platform. Code that goes beyond one of them is refused: :class:`ansorlite.errors.ProgramSizeError`.

    Attributes:
        values: that one function computes. It counts values, not time, so that every process decides alike.
    """

    values: int
