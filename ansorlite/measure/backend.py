"""What the measurement needs of a code generator. A backend is a module with these functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ansorlite.codegen.object import Report
from ansorlite.runtime.device import Memory
from ansorlite.runtime.timing import Call
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


@dataclass(frozen=True)
class BuiltProgram:
    """A candidate that is compiled.

    Attributes:
        code: all that :meth:`Backend.load` gets.
        key: as a :class:`~ansorlite.records.measurement.Measurement`'s.
        reports: what an assembler said of its launches; empty where it said nothing.
    """

    code: bytes
    key: str = ""
    reports: tuple[Report, ...] = ()


class Backend(Protocol):
    """Builds programs in one process, and loads them in another. Whatever it raises becomes the record's error."""

    def build(self, task: Task, candidate: Candidate) -> BuiltProgram:
        """Compile one candidate."""

    def default(self, task: Task) -> Candidate:
        """The candidate to take where none was measured."""

    def load(self, task: Task, artifact: bytes, arguments: Sequence[Memory]) -> Call:
        """The program, bound to its arguments on the task's device: inputs, then outputs, which it writes in place."""
