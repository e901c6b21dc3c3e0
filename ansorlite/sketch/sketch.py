"""A sketch: a finished step list, with holes."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.program import ColumnProgram
from ansorlite.columns.tape import Number, Tape
from ansorlite.loops.nodes import Function
from ansorlite.schedule.canonical import canonical
from ansorlite.schedule.fold import chosen, fold
from ansorlite.schedule.lower import lower_row
from ansorlite.schedule.nest import Program
from ansorlite.schedule.steps import Hole, Step, holes
from ansorlite.schedule.tiles import TileTable
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
        """Names the sketch among those of its task, whatever the names in it, as long as its steps and choices stay the same."""
        numbers: dict[str, int] = {}
        shape = repr([_without_names(step, numbers) for step in self.steps])
        return hashlib.sha256(shape.encode()).hexdigest()[:12]

    def fold(self, row: Sequence[int]) -> Program:
        """The program of one row, in ints."""
        return fold(self.steps, self.dag, chosen(row))

    def columns(self, numbers: Callable[[Program], Sequence[Number]]) -> ColumnProgram:
        """What computes ``numbers`` of a program for whole populations of rows."""
        tape = Tape()
        with _without_collector():
            program = ColumnProgram(tape, numbers(fold(self.steps, self.dag, tape.gather)))
            tape.close()
        return program

    @cached_property
    def _canonical(self) -> ColumnProgram:
        return self.columns(canonical)

    def canonical(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n, k) of rows (n, holes): equal rows of the result mean one and the same program."""
        return self._canonical.run(rows).T.astype(np.int64)

    def fits(self, row: Sequence[int]) -> bool:
        """Whether ``row`` fills the holes: a record may come from a version that had others."""
        return len(row) == len(self.holes) and all(0 <= value < hole.size for value, hole in zip(row, self.holes, strict=True))

    def lower(self, row: Sequence[int], name: str = "kernel") -> Function:
        """The loop IR of one row.

        Raises:
            TuningError: the row does not fit the holes.
        """
        return lower_row(self.steps, self.dag, row, name)


def _without_names(value: object, numbers: dict[str, int]) -> object:
    """Steps and their parts as plain data, with names numbered in order of appearance."""
    if isinstance(value, str):
        return numbers.setdefault(value, len(numbers))
    if isinstance(value, tuple):
        return tuple(_without_names(item, numbers) for item in value)
    if isinstance(value, TileTable):
        return hashlib.sha256(value.spans.tobytes()).hexdigest()
    if is_dataclass(value):
        return (type(value).__name__, *(_without_names(getattr(value, field.name), numbers) for field in fields(value)))
    return value


@contextmanager
def _without_collector() -> Iterator[None]:
    """Recording makes a hundred thousand small objects, all of them kept: looking for garbage among them takes a third of it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
