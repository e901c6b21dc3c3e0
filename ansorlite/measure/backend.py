"""What the measurement needs of a code generator. A backend is a module with these functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ansorlite.measure.timing import Call
from ansorlite.runtime.device import Memory
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.state import Rule
from ansorlite.task import Task


class Backend(Protocol):
    """Builds programs in one process, and loads them in another. Whatever it raises becomes the record's error."""

    def build(self, task: Task, candidate: Candidate, rules: Sequence[Rule] | None) -> bytes:
        """Compile one candidate of the sketches that ``rules`` derive. The bytes are all that :meth:`load` gets."""

    def default(self, task: Task, rules: Sequence[Rule] | None) -> Candidate:
        """The candidate to take where none was measured."""

    def load(self, task: Task, artifact: bytes, arguments: Sequence[Memory]) -> Call:
        """The program, bound to its arguments on the task's device: inputs, then outputs, which it writes in place."""
