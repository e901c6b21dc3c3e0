"""A sketch: a finished trace, with holes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.program import ColumnProgram
from ansorlite.columns.tape import Number, Tape
from ansorlite.errors import TuningError
from ansorlite.garbage import without_collector
from ansorlite.loops.nodes import Function
from ansorlite.schedule.canonical import canonical
from ansorlite.schedule.fold import fold
from ansorlite.schedule.lower import lower_program
from ansorlite.schedule.nest import Program
from ansorlite.schedule.samples import Hole
from ansorlite.schedule.structure import Structure
from ansorlite.schedule.trace import Trace, chosen
from ansorlite.schedule.trace_pattern import TracePattern
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.constraint import Constraint
from ansorlite.target import Target


@dataclass(frozen=True, eq=False)
class Sketch:
    """One shape of program for a task; a row of ints fills its holes.

    Attributes:
        structure: what the trace makes of the task's computation.
        trace: the schedule.
        target: the machine it is for.
        constraints: what that sets limits to.
    """

    structure: Structure
    trace: Trace
    target: Target
    constraints: tuple[Constraint, ...] = ()

    @property
    def holes(self) -> tuple[Hole, ...]:
        """The columns of a row."""
        return self.trace.holes

    @cached_property
    def text(self) -> str:
        """The trace, in terms of its holes."""
        return str(self.trace)

    @cached_property
    def signature(self) -> str:
        """Names the sketch among those of its task."""
        tables = b"".join(hole.table.spans.tobytes() for hole in self.holes if hole.table is not None)
        return hashlib.sha256(self.text.encode() + tables).hexdigest()[:12]

    def fold(self, row: Sequence[int]) -> Program:
        """The program of one row, in ints."""
        return fold(self.structure, chosen(self.holes, row))

    def columns(self, numbers: Callable[[Program], Sequence[Number]]) -> ColumnProgram:
        """What computes ``numbers`` of a program for whole populations of rows.

        Keys and conditions are recorded before, if they are not yet: all are columns of one fold, which is forgotten then.
        """
        _ = self._canonical, self._conditions
        with _FOLDS.lock, without_collector():
            tape, program = _FOLDS.taken(self)
            result = ColumnProgram(tape, numbers(program))
            # All of it is gone before the collector looks.
            tape.close()
            del program
        return result

    def _own(self, numbers: Callable[[Program], Sequence[Number]]) -> ColumnProgram:
        """As :meth:`columns`, with the fold kept for what is recorded next."""
        with _FOLDS.lock, without_collector():
            tape, program = _FOLDS.taken(self)
            result = ColumnProgram(tape, numbers(program))
            _FOLDS.keep(self, tape, program)
        return result

    @cached_property
    def _canonical(self) -> ColumnProgram:
        return self._own(canonical)

    def canonical(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n, k) of rows (n, holes): equal rows of the result mean one and the same program."""
        return self._canonical.run(rows).T.astype(np.int64)

    @cached_property
    def _conditions(self) -> ColumnProgram | None:
        """What computes which conditions rows meet: that the choices go together, then each constraint; ``None`` if all do."""

        def flags(program: Program) -> list[Number]:
            return [program.valid, *(constraint.holds(program, self.target) for constraint in self.constraints)]

        program = self._own(flags)
        # Where nothing is left to compute, any row tells of all.
        return program if len(program) or not program.run(np.zeros((1, len(self.holes)), np.int64)).all() else None

    @property
    def deciding(self) -> tuple[int, ...]:
        """The holes on which it depends whether a row is valid: often a few of all."""
        return self._conditions.holes if self._conditions is not None else ()

    @cached_property
    def parts(self) -> tuple[ColumnProgram, ...]:
        """What computes, nest by nest, which constraints rows meet; none where there is one. Most holes are of one nest alone."""

        counts: list[int] = []

        def flags(program: Program, number: int) -> list[Number]:
            counts.append(len(program.nests))
            alone = replace(program, nests=program.nests[number : number + 1])
            return [constraint.holds(alone, self.target) for constraint in self.constraints]

        first = self._own(partial(flags, number=0))
        others = range(1, counts[0])
        return (first, *(self._own(partial(flags, number=number)) for number in others)) if others else ()

    def valid(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n,) of rows (n, holes): whether the choices go together, and the machine can run the program."""
        if self._conditions is None:
            return np.ones(len(rows), dtype=bool)
        return np.asarray(self._conditions.run(rows).all(axis=0))

    def why_invalid(self, rows: NDArray[np.int64]) -> str:
        """A clause that says which condition the fewest of the rows (n, holes) meet."""
        assert self._conditions is not None
        met = self._conditions.run(rows).sum(axis=1)
        least = int(met.argmin())
        if least == 0:
            said = "go together: factors of splits cover their loops, and divide them where they must"
        else:
            said = f"make {self.constraints[least - 1].said(self.target)}"
        return f"{_few(met[least], rows)} of its choices {said}"

    def fits(self, row: Sequence[int]) -> bool:
        """Whether ``row`` fills the holes: a record may come from a version that had others."""
        return len(row) == len(self.holes) and all(0 <= value < hole.size for value, hole in zip(row, self.holes, strict=True))

    def candidate(self, row: Sequence[int]) -> Candidate:
        """The program of one row, as its trace."""
        return Candidate(str(self.trace.decided(row)))

    @cached_property
    def _pattern(self) -> TracePattern:
        return TracePattern(self.trace)

    def row_of(self, candidate: Candidate) -> tuple[int, ...] | None:
        """The row of a program; ``None`` if it is none of this sketch's."""
        return self._pattern.row(candidate.trace)

    def lower(self, row: Sequence[int], name: str = "kernel") -> Function:
        """The loop IR of one row.

        Raises:
            TuningError: the row does not fit the holes.
        """
        if not self.fits(row):
            sizes = tuple(hole.size for hole in self.holes)
            raise TuningError(f"row {tuple(row)} does not fit a sketch with holes of sizes {sizes}")
        return lower_program(self.fold(row), name)


class _Folds:
    """The folds over all rows of the sketches that something was recorded of last, each with the tape that it is on.

    Of so many alone: a tape is larger than the programs of its columns, which are all that a sketch keeps.
    """

    def __init__(self, most: int) -> None:
        self.lock = threading.Lock()
        self._most = most
        self._kept: dict[Sketch, tuple[Tape, Program]] = {}

    def taken(self, sketch: Sketch) -> tuple[Tape, Program]:
        """The fold of a sketch, which is not kept any more."""
        found = self._kept.pop(sketch, None)
        if found is not None:
            return found
        tape, column = Tape(), {hole.name: position for position, hole in enumerate(sketch.holes)}
        return tape, fold(sketch.structure, lambda hole, table: tape.gather(column[hole.name], table))

    def keep(self, sketch: Sketch, tape: Tape, program: Program) -> None:
        """Keep a fold that was taken; the oldest one of too many is forgotten."""
        self._kept[sketch] = tape, program
        if len(self._kept) > self._most:
            oldest, _ = self._kept.pop(next(iter(self._kept)))
            oldest.close()


#: Tasks of more sketches are few.
_FOLDS: Final = _Folds(8)


def _few(count: float, rows: NDArray[np.int64]) -> str:
    return "none" if not count else f"only {int(count):,} in {len(rows):,}"
