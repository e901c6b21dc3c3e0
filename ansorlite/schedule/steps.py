"""The schedule steps: what a sketch is a list of.

A step is data. Steps that change the set of stages (``Inline``, ``CacheWrite``, ``Rfactor``, ``Dot``, ``Convert``, ``Fuse``)
have no holes and are applied to the computation while the sketch is derived (``rewrite.py``). The others shape loop nests; a
:class:`Hole` in them is a column of the population, and ``fold.py`` is the one place that says what a step does to a nest.

Stages, loops and holes are named, never numbered. A loop ``i2`` is level 2 of axis ``i``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ansorlite.schedule.tiles import TileTable
from ansorlite.te.ops import BinaryOp

#: Bytes that a streaming store's innermost loop writes in a row, at least: at both ends of a run a line is written in two parts.
SHORTEST_STREAM: Final = 512


@dataclass(frozen=True)
class Hole:
    """One decision: an index into a list of choices.

    Attributes:
        name: unique in its sketch, for example ``C.i``.
        choices: what the index selects, in a natural order; for a tile the rows of its table.
        table: the tile table, when the hole is a tile.
    """

    name: str
    choices: tuple[int, ...] = ()
    table: TileTable | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return self.table.rows if self.table is not None else len(self.choices)

    def __str__(self) -> str:
        if self.table is not None:
            return f"hole {self.name}: table({self.table.extent}, parts={self.table.parts})"
        return f"hole {self.name}: one of {self.choices}"


@dataclass(frozen=True)
class Fuse:
    """``fuse``: dimensions that are walked in step everywhere become one, in all tensors."""

    tensors: tuple[str, ...]

    def __str__(self) -> str:
        return f"fuse       {', '.join(self.tensors)}"


@dataclass(frozen=True)
class Polyphase:
    """``polyphase``: of the steps of a sum only those are taken that meet data, one in ``stride``."""

    stage: str
    axis: str
    stride: int

    def __str__(self) -> str:
        return f"polyphase  {self.stage}.{self.axis} by {self.stride}"


@dataclass(frozen=True)
class Divide:
    """``divide``: an axis that is read by quotient and remainder becomes two, in all stages that walk it in step."""

    stage: str
    axis: str
    divisor: int

    def __str__(self) -> str:
        return f"divide     {self.stage}.{self.axis} by {self.divisor}"


@dataclass(frozen=True)
class Inline:
    """``compute_inline``: the stage is computed inside its consumers."""

    stage: str

    def __str__(self) -> str:
        return f"inline     {self.stage}"


@dataclass(frozen=True)
class CacheWrite:
    """``cache_write``: the stage is computed into a local tile ``cache`` and copied from there."""

    stage: str
    cache: str

    def __str__(self) -> str:
        return f"cache_write {self.stage} -> {self.cache}"


@dataclass(frozen=True)
class Rfactor:
    """``rfactor``: a reduction becomes independent partial reductions ``partial`` over parts of ``axis``, and their fold.

    The number of parts is the outermost trip of the split of ``axis`` in ``partial``.
    """

    stage: str
    axis: str
    partial: str

    def __str__(self) -> str:
        return f"rfactor    {self.stage}.{self.axis} -> {self.partial}"


@dataclass(frozen=True)
class Dot:
    """``tensorize``: the products along ``axis`` are summed by dot products of words; ``words`` are the stages that make them."""

    stage: str
    axis: str
    op: BinaryOp
    words: tuple[str, ...]

    def __str__(self) -> str:
        made = f" of {', '.join(self.words)}" if self.words else ""
        return f"tensorize  {self.stage}.{self.axis} by {self.op.value}{made}"


@dataclass(frozen=True)
class Convert:
    """``convert``: factors of the products are converted once, into the stages ``copies``."""

    stage: str
    copies: tuple[str, ...]

    def __str__(self) -> str:
        return f"convert    {self.stage}, factors into {', '.join(self.copies)}"


@dataclass(frozen=True)
class Winograd:
    """``winograd``: a short convolution becomes transforms, a batched matrix product, and the inverse transform.

    ``outputs`` are the neighbouring outputs that are computed together along each window.
    """

    stage: str
    outputs: tuple[int, ...]

    def __str__(self) -> str:
        return f"winograd   {self.stage}, tiles of {' x '.join(map(str, self.outputs))}"


@dataclass(frozen=True)
class Split:
    """``split``: an axis becomes ``parts`` loops ``axis0 axis1 ...``; perfect or not as the table's row says."""

    stage: str
    axis: str
    loops: tuple[str, ...]
    hole: Hole

    def __str__(self) -> str:
        return f"split      {self.stage}.{self.axis} -> {' '.join(self.loops)}    {self.hole}"


@dataclass(frozen=True)
class Reorder:
    """``reorder``: the loops of a stage from outermost to innermost, in bands of like loops (S S R S R S)."""

    stage: str
    bands: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return f"reorder    {self.stage}: {' | '.join(' '.join(band) for band in self.bands)}"


@dataclass(frozen=True)
class Follow:
    """``follow_split``: ``stage`` is split as the space axes of ``leader``, and runs after it in the same tiles.

    ``hole`` says after which band of the leader's loops: ``leader`` is computed at that loop of ``stage``.
    """

    stage: str
    leader: str
    hole: Hole

    def __str__(self) -> str:
        return f"follow     {self.stage}, split as {self.leader}\ncompute_at {self.leader} in {self.stage}    {self.hole}"


@dataclass(frozen=True)
class ComputeAt:
    """``compute_at``: ``stage`` is computed, tile by tile, inside a band of the loops of ``anchor``; 0 is at the root."""

    stage: str
    anchor: str
    hole: Hole

    def __str__(self) -> str:
        return f"compute_at {self.stage} in {self.anchor}    {self.hole}"


@dataclass(frozen=True)
class CacheRead:
    """``cache_read`` with packing: ``stage`` reads ``tensor`` from a copy laid out in the order in which it is used.

    The copy is made inside a band of the stage's loops (0: at the root); its dimensions are the loops below that the
    read depends on.
    """

    tensor: str
    stage: str
    packed: str
    hole: Hole

    def __str__(self) -> str:
        return f"cache_read {self.tensor} for {self.stage} -> {self.packed}, packed    {self.hole}"


@dataclass(frozen=True)
class Parallel:
    """``parallel``: how many of the outermost loops are fused and run by all threads."""

    stage: str
    hole: Hole

    def __str__(self) -> str:
        return f"parallel   {self.stage}    {self.hole}"


@dataclass(frozen=True)
class Vectorize:
    """``vectorize``: the loop over ``axis`` that is innermost runs in vectors of so many lanes."""

    stage: str
    axis: str
    hole: Hole

    def __str__(self) -> str:
        return f"vectorize  {self.stage}.{self.axis}    {self.hole}"


@dataclass(frozen=True)
class Stream:
    """``stream``: whether what the stage stores goes past the caches."""

    stage: str
    hole: Hole

    def __str__(self) -> str:
        return f"stream     {self.stage}    {self.hole}"


@dataclass(frozen=True)
class Unroll:
    """``unroll``: the innermost loops are straight-line code as long as it has at most so many vector statements."""

    stage: str
    hole: Hole

    def __str__(self) -> str:
        return f"unroll     {self.stage}    {self.hole}"


#: The steps that change the set of stages.
StageStep = Polyphase | Divide | Fuse | Inline | CacheWrite | Rfactor | Dot | Convert | Winograd
Step = StageStep | Split | Reorder | Follow | ComputeAt | CacheRead | Parallel | Vectorize | Unroll | Stream


def holes(steps: tuple[Step, ...]) -> tuple[Hole, ...]:
    """The holes of a step list, in order: the columns of its rows."""
    return tuple(step.hole for step in steps if not isinstance(step, StageStep | Reorder))
