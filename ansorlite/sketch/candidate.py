"""A candidate: the name of a sketch and the ints that fill its holes. Small, and only data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Candidate:
    """One program of a task.

    Attributes:
        sketch: the ``signature`` of the task's sketch.
        row: one int for each hole of that sketch.
    """

    sketch: str
    row: tuple[int, ...]


#: The task's loops as written: serial, scalar, one thread. Every task has it, whatever sketches it has.
NAIVE: Final = Candidate("naive", ())
