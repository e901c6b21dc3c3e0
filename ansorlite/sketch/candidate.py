"""A candidate: the trace of one program, with everything decided, as text. Small, and only data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Candidate:
    """One program of a task.

    Attributes:
        trace: what a :class:`~ansorlite.schedule.trace.Trace` without holes prints. It says all there is to say: no rules and no
            tables are needed to make the program of it.
    """

    trace: str

    @property
    def name(self) -> str:
        """Short, for people: equal for equal traces."""
        return hashlib.sha256(self.trace.encode()).hexdigest()[:8]


#: The task's loops as written: serial, scalar, one thread. Every task has it.
NAIVE: Final = Candidate("def schedule(s):\n    pass")
