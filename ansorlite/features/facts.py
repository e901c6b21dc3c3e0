"""What is known of one statement of ``n`` programs, before it is made into features.

Both ways to features end here: the fold gives these facts for a population, in columns; the reference reads them off the
lowered loop IR of one program, ``n = 1``. ``assemble.py`` then makes the features of either.

A statement is a stage's main store: the step of a reduction, or the element of an element-wise stage. Starts of
accumulators, and moves between registers and memory, are not statements of their own.

Arrays over depths have shape ``(D + 1, n)``: entry ``d`` speaks of what happens below the first ``d`` of the ``D`` loops.
Loops of one iteration may be there or not; they change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class AccessFacts:
    """One distinct element read or written by the statement.

    Attributes:
        widths: for each dimension ``(D + 1, n)``: how long the box is that the loops below touch.
        extents: for each dimension ``(n,)``: the buffer's extent.
        item: bytes of an element.
        moves: ``(D, n)`` whether the address depends on the loop.
        lane_stride: ``(n,)`` 0 where it does not move along the lanes (or there are none), 1 contiguous, 2 otherwise.
        write: whether it is the store. A reduction's is where its elements add up, in the tile behind any registers.
    """

    widths: tuple[Numbers, ...]
    extents: tuple[Numbers, ...]
    item: int
    moves: Flags
    lane_stride: Numbers
    write: bool


@dataclass(frozen=True)
class Operations:
    """Operations on data that one iteration does: (add or compare), multiply, (divide or root), exponentials and such."""

    cheap: int = 0
    mul: int = 0
    div: int = 0
    math: int = 0


@dataclass(frozen=True, eq=False)
class StatementFacts:
    """One statement.

    Attributes:
        name: of the stage.
        trips: ``(D, n)``.
        parallel: ``(D, n)`` whether the loop is part of the fused parallel one.
        unrolled: ``(D, n)``.
        vector: ``(D, n)`` whether the loop is the vectorised one.
        reduce: ``(D, n)`` whether its iterations add to the same element; of no consequence for the vectorised loop.
        lanes: ``(n,)`` vector width, 1 for a scalar.
        in_registers: ``(n,)`` whether what it accumulates is in registers (false where nothing is accumulated).
        accumulates: whether it is a reduction's step.
    """

    name: str
    trips: Numbers
    parallel: Flags
    unrolled: Flags
    vector: Flags
    reduce: Flags
    lanes: Numbers
    in_registers: Flags
    accumulates: bool
    operations: Operations
    accesses: tuple[AccessFacts, ...]
