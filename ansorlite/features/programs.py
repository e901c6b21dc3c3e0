"""What strategies and cost models see of one sketch: its space of rows, and numbers about the programs of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansorlite.features.extract import extract
from ansorlite.features.loop_tree import LoopTree, loop_tree
from ansorlite.features.reported import Reported
from ansorlite.features.tokens import tokens
from ansorlite.loops.nodes import Function
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.space import Space
from ansorlite.sketch.tile_space import TileSpace

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Programs:
    """The programs of some rows of a sketch. What is said of them is computed when it is first asked for, and kept.

    Attributes:
        sketch: whose rows they are.
        rows: ``(n, holes)``.
        reported: what an assembler has said of others of the sketch.
    """

    sketch: Sketch
    rows: Rows
    reported: Reported = field(default_factory=Reported)

    @cached_property
    def features(self) -> NDArray[np.float64]:
        """``(n, statements, NUM_FEATURES)``: see ``features/names.py``."""
        features, gpu = extract(self.sketch, self.rows), self.sketch.target.gpu
        return features if gpu is None else self.reported.corrected(features, gpu)

    @cached_property
    def knobs(self) -> NDArray[np.float64]:
        """``(n, d)``: coordinates in which near rows are similar programs (:meth:`Space.embed`)."""
        return TileSpace(self.sketch).embed(self.rows)

    @cached_property
    def tokens(self) -> NDArray[np.float64]:
        """``(n, primitives, len(TOKEN))``: the trace, primitive by primitive; see ``features/tokens.py``."""
        return tokens(self.sketch, self.rows)

    @cached_property
    def loops(self) -> LoopTree:
        """The loops as a tree, of one shape for all programs of a sketch; see ``features/loop_tree.py``."""
        return loop_tree(self.sketch, self.rows)


class ProgramSpace:
    """The programs of one sketch.

    Attributes:
        sketch: the trace with its holes.
        space: the rows that fill them.
        reported: what an assembler has said of its programs so far.
    """

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self.space: Space = TileSpace(sketch)
        self.reported = Reported()

    def programs(self, rows: Rows) -> Programs:
        """What is known of the programs of ``rows``, ``(n, holes)``, by now."""
        return Programs(self.sketch, rows, self.reported)

    def report(self, row: tuple[int, ...], registers: float) -> None:
        """Notes how many registers a thread of a program for GPUs wants, as its assembler said."""
        gpu = self.sketch.target.gpu
        assert gpu is not None, "no assembler says anything of programs for CPUs"
        self.reported = self.reported.plus(self.sketch.fold(row), gpu, registers)

    def lower(self, row: tuple[int, ...]) -> Function:
        """The loop IR of one row.

        Raises:
            TuningError: the row does not fit the holes.
        """
        return self.sketch.lower(row)

    def candidate(self, row: tuple[int, ...]) -> Candidate:
        """The program of one row as what is measured and recorded."""
        return self.sketch.candidate(row)

    def row_of(self, candidate: Candidate) -> tuple[int, ...] | None:
        """The row of a program; ``None`` if it is none of this space."""
        return self.sketch.row_of(candidate)
