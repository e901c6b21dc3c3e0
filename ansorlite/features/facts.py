"""What is known of one statement, before it is made into features.

Both ways to features end here: the fold gives these facts for a population, in columns; the reference reads them off the
lowered loop IR of one program, as plain numbers. ``assemble.py`` then makes the features of either.

A statement is a stage's main store: the step of a reduction, or the element of an element-wise stage. Starts of
accumulators, and moves between registers and memory, are not statements of their own.

Of the ``D`` loops around a statement there are ``D`` trips and flags, outermost first. What depends on a depth has ``D + 1``
entries: entry ``d`` speaks of what happens below the first ``d`` loops. Loops of one iteration may be there or not; they
change nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ansorlite.columns.tape import Number

#: One number of each loop, or of each depth.
Numbers = Sequence[Number]

#: In the place of an access: what is done in every iteration.
ALWAYS: Final = -1


@dataclass(frozen=True, eq=False)
class AccessFacts:
    """One distinct element read or written by the statement.

    Attributes:
        widths: for each dimension, by depth: how long the box is that the loops below touch.
        extents: for each dimension the buffer's extent.
        pads: for each dimension the elements behind a run along it that nobody uses; ``()`` where there are none.
        item: bytes of an element.
        moves: by loop: whether the address depends on it.
        renewed: by loop: whether each iteration has a buffer of its own, of other data at the same address.
        lane_stride: 0 where it does not move along the lanes (or there are none), 1 contiguous, 2 otherwise.
        write: whether it is the store. A reduction's is where its elements add up, in the tile behind any registers.
        held: whether it is read from registers: nothing is loaded.
        counted: whether its lines are its own; else another access, of neighbouring elements, has the lines of both.
        lane_step: elements from one lane to the next, where ``lane_stride`` is 2 and they are known; else 0.
        producer: of a read, the stage that computes what is read; empty of an input.
        constant: of a read: whether it is the same in every call.
        unaligned: of a read along the lanes: whether a loop moves it by other than whole vectors or cache lines.
    """

    widths: tuple[Numbers, ...]
    extents: Numbers
    item: int
    moves: Numbers
    lane_stride: Number
    write: bool
    renewed: Numbers
    pads: Numbers = ()
    held: Number = 0
    counted: bool = True
    lane_step: Number = 0
    producer: str = ""
    constant: bool = False
    unaligned: Number = 0


@dataclass(frozen=True)
class Operations:
    """How many operations on data: (add or compare), multiply, (divide or root), exponentials and such, (integers to floats or
    back), dot products of words."""

    cheap: int = 0
    mul: int = 0
    div: int = 0
    math: int = 0
    convert: int = 0
    dot: int = 0


@dataclass(frozen=True, eq=False)
class MatrixFacts:
    """The loops of dot products of words that matrix units may do, as ``loops/matrix_tile.py`` describes them.

    Attributes:
        matrix: flag: whether their words lie as a product of matrices has them.
        around: iterations of the loops of the reduction around the words that have nothing else in them.
        outer: iterations of the unrolled loops around the rows.
        rows, columns, words: iterations of these loops.
    """

    matrix: Number
    around: Number
    outer: Number
    rows: Number
    columns: Number
    words: Number


@dataclass(frozen=True, eq=False)
class StatementFacts:
    """One statement.

    Attributes:
        name: of the stage.
        trips: by loop.
        parallel: by loop: whether it is part of the fused parallel one.
        unrolled: by loop.
        vector: by loop: whether it is the vectorised one.
        reduce: by loop: whether its iterations add to the same element; of no consequence for the vectorised loop.
        lanes: vector width, 1 for a scalar.
        in_registers: 1 where what it accumulates is in registers, and moved to memory at the end; 2 where the epilogue takes it
            from there; else 0.
        accumulates: whether it is a reduction's step.
        streamed: whether what it stores goes past the caches.
        fetched: how many lines are asked for ahead, in all.
        needed: the share of its iterations that run; the others change nothing, and are left out.
        operations: by the accesses, as positions in ``accesses``, that the operands are made of.
        matrix: of dot products that the target has matrix units for.
        teams: by parallel loop, named by whose it is: whether that is around the statement; around each is one at most.
    """

    name: str
    trips: Numbers
    parallel: Numbers
    unrolled: Numbers
    vector: Numbers
    reduce: Numbers
    lanes: Number
    in_registers: Number
    accumulates: bool
    streamed: Number
    operations: Mapping[frozenset[int], Operations]
    accesses: tuple[AccessFacts, ...]
    fetched: Number = 0
    needed: Number = 1
    matrix: MatrixFacts | None = None
    teams: Mapping[Hashable, Number] = field(default_factory=dict)
