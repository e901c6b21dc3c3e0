"""A sketch: a finished step list, with holes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ansorlite.loops.nodes import Function
from ansorlite.schedule.fold import Program, fold
from ansorlite.schedule.lower import lower_row
from ansorlite.schedule.steps import Hole, Step, holes
from ansorlite.target import Target
from ansorlite.te.dag import ComputeDAG


@dataclass(frozen=True, eq=False)
class Sketch:
    """One shape of program for a task; a row of ints fills its holes.

    Attributes:
        dag: the computation after the steps that change the set of stages.
        steps: the schedule.
        target: the machine it is for.
    """

    dag: ComputeDAG
    steps: tuple[Step, ...]
    target: Target

    @cached_property
    def holes(self) -> tuple[Hole, ...]:
        """The columns of a row."""
        return holes(self.steps)

    @cached_property
    def text(self) -> str:
        """The steps, in terms of their holes."""
        return "\n".join(str(step) for step in self.steps)

    @cached_property
    def signature(self) -> str:
        """Names the sketch among those of its task, as long as its steps and their choices stay the same."""
        tables = ";".join(f"{hole.name}:{hole.size}:{_fingerprint(hole)}" for hole in self.holes)
        return hashlib.sha256(f"{self.text}\n{tables}".encode()).hexdigest()[:12]

    def fold(self, rows: np.ndarray) -> Program:
        """The programs of ``rows`` (n, holes), in columns."""
        return fold(self.steps, self.dag, rows)

    def lower(self, row: Sequence[int], name: str = "kernel") -> Function:
        """The loop IR of one row.

        Raises:
            TuningError: the row does not fit the holes.
        """
        return lower_row(self.steps, self.dag, row, name)


def _fingerprint(hole: Hole) -> str:
    data = hole.table.spans.tobytes() if hole.table is not None else repr(hole.choices).encode()
    return hashlib.sha256(data).hexdigest()[:8]
