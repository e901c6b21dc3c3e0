"""Loop nests: what the fold of a step list gives.

Every number in them is an int when they are those of one row, and a column when they are those of a population
(``columns/tape.py``). Flags are 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ansorlite.columns.arithmetic import both, either, equal, every, floor, minimum, negated, product
from ansorlite.columns.tape import Number
from ansorlite.loops.nodes import THREADS, LoopKind, Scope
from ansorlite.machine.matrix import COLUMNS, MatrixUnit
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.regions import Region
from ansorlite.schedule.structure import Tail
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Read, Reduce
from ansorlite.te.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop of an anchor.

    Attributes:
        axis: the anchor's axis that the loop walks.
        depth: the place among the levels of its axis, the outermost first, whatever the order of the loops.
        band: which band of like loops it belongs to.
        reduce: whether its iterations add to the same elements.
        span: how many elements of the axis one run of the loop covers.
        step: how many of them one iteration covers.
        trip: iterations.
        unrolled: flag.
        bound: what of a GPU it is bound to.
        fused: the fused loop that it is one of; those of one stand side by side, and run as one.
        guard: where its last iteration reaches beyond the end, the kind of the condition under which that runs; ``None``: it is
            shifted inwards or cut short.
    """

    name: str
    axis: Axis
    depth: int
    band: int
    reduce: bool
    span: Number
    step: Number
    trip: Number
    unrolled: Number
    bound: LoopKind | None = None
    fused: LoopRef | None = None
    guard: Tail | None = None


@dataclass(frozen=True, eq=False)
class Attached:
    """A stage without a nest of its own: computed region by region inside an anchor's loops, or whole at the root.

    Attributes:
        region: which box of it the anchor's tiles need.
        at: after how many bands of the anchor; 0 is the root, where all of it is computed.
        lengths: for each dimension the elements of the region.
        lane_axis: the axis that is vectorised; ``None`` for a scalar.
        lanes: vector width, 1 for a scalar.
        parallel: how many of its outermost loops are fused and parallel; 0 unless at the root.
        prepared: whether it is computed once, before the first call; then it is at the root.
        shared: whether all threads of a block see it.
        nest: its loops over the region, where they are shaped; else they are those over its axes.
        dealt: how many threads of a block compute it together; 0 where it is computed in loops as on a CPU.
        slots: of the ring that it is a part of; 1: of none.
    """

    tensor: Tensor
    region: Region
    at: Number
    lengths: tuple[Number, ...]
    lane_axis: Axis | None
    lanes: Number
    parallel: Number
    prepared: bool
    shared: bool
    nest: Nest | None
    dealt: Number = 0
    slots: Number = 1


@dataclass(frozen=True, eq=False)
class CopyLoop:
    """One loop of a packed copy: a loop of the anchor, or several of them fused.

    Attributes:
        parts: positions of loops of the anchor, outermost first, each with the flag whether this loop walks it.
        trip: iterations.
        unrolled: flag.
        lanes: vector width, 1 where it is not vectorised.
        parallel: flag: whether it is one of the fused parallel ones.
        moved: whether it comes in another place than its parts.
    """

    parts: tuple[tuple[int, Number], ...]
    trip: Number
    unrolled: Number
    lanes: Number
    parallel: Number
    moved: bool = False


@dataclass(frozen=True, eq=False)
class Packed:
    """What the anchor reads of a tensor, laid out in order of use: a copy of an input, or of a stage that has a place of its own,
    or the computation of a stage that has none.

    Attributes:
        tensor: what is read.
        copy: the copy's name, and its element in terms of the anchor's axes that the read depends on, which are its axes.
        at: after how many bands of the anchor; 0 is the root.
        prepared: whether the copy is made once, before the first call; then that is at the root.
        shared: whether all threads of a block see it.
        pads: by loop that is a dimension of the copy: elements behind what one iteration of it has.
        loops: that make the copy inside of its place, outermost first.
        transposed: flag: whether it takes vectors along its source and stores across them.
    """

    tensor: Tensor
    copy: Tensor
    at: Number
    prepared: bool
    shared: bool
    pads: Mapping[str, Number]
    loops: tuple[CopyLoop, ...]
    transposed: Number

    @property
    def copies(self) -> bool:
        """Whether what is laid out is a copy, not computed there."""
        return isinstance(self.copy.body, Read) and self.copy.body.tensor is self.tensor


@dataclass(frozen=True, eq=False)
class Fetched:
    """What the anchor reads that is asked for ahead.

    Attributes:
        tensor: what is read; from its packed copy, if that is made outside of the loop.
        loop: the position of the loop whose iterations ask for it.
        distance: how many iterations ahead.
    """

    tensor: Tensor
    loop: int
    distance: Number


@dataclass(frozen=True)
class Multiplied:
    """The innermost loops of a nest as instructions of a matrix unit.

    Attributes:
        row, column: axes of the anchor that its tiles are along.
    """

    unit: MatrixUnit
    row: Axis
    column: Axis

    def has(self, axis: Axis, step: Number) -> bool:
        """Whether a loop over ``axis`` in such steps is part of one instruction."""
        return bool(step < self.least(axis))

    def least(self, axis: Axis) -> int:
        """How many elements of an axis one instruction covers; of those that add up, more than its loops step by."""
        return 2 if axis.reduce else self.unit.rows if axis is self.row else COLUMNS if axis is self.column else 0


@dataclass(frozen=True, eq=False)
class Ring:
    """Copies that threads share are made some iterations ahead of a loop.

    Attributes:
        loops: its position; of a fused one those of its parts.
        stages: slots, of one iteration's copies each: with 1 nothing is made ahead.
    """

    loops: tuple[int, ...]
    stages: Number


@dataclass(frozen=True, eq=False)
class Nest:
    """A root loop nest, or the loops over the region of an attached stage: an anchor with its loops, and what is computed inside.

    Attributes:
        extents: how much of each axis the loops walk: all of it, or of the region.
        loops: outermost first.
        bands: for each band whether it is a reduction's.
        factor: the axis whose first loop makes partial results, when the anchor is an rfactor.
        epilogue: the element-wise consumer that runs tile by tile after the anchor, if any.
        epilogue_at: after how many bands; 0 without an epilogue.
        reduce_at: the band before whose loops accumulators start: where nothing is said, the first one that really reduces, or
            the number of bands if none does.
        starts: whether that is said: it may be further out.
        lane_axis: the axis of the innermost loop.
        lanes: vector width of the innermost loop, 1 when it is scalar.
        parallel: how many of the outermost loops are fused and parallel.
        prepared: whether it runs once, before the first call.
        scope: the memory that its tile of accumulators must be in; ``None``: registers where that can be.
        streamed: whether what it stores, the epilogue's elements or the anchor's, goes past the caches.
        cut: the names of the loops whose last iteration is cut short where the step does not divide the span; that of the others
            is shifted inwards.
        mixed: the axes of which an inner level is walked outside of an outer one.
        written_out: how often the anchor's statement is written out in straight-line code, a vectorised loop counted as one.
        fetched: what is asked for ahead.
        multiplied: what a matrix unit does of it; ``None``: there is none.
        ring: the loop that copies ahead, if one does.
    """

    anchor: Tensor
    extents: Mapping[Axis, Number]
    loops: tuple[Loop, ...]
    bands: tuple[bool, ...]
    factor: Axis | None
    epilogue: Tensor | None
    epilogue_at: Number
    reduce_at: Number
    starts: bool
    lane_axis: Axis | None
    lanes: Number
    parallel: Number
    prepared: bool
    scope: Scope | None
    streamed: Number
    cut: frozenset[str]
    mixed: frozenset[Axis]
    written_out: Number
    attached: tuple[Attached, ...]
    packed: tuple[Packed, ...]
    fetched: tuple[Fetched, ...] = ()
    multiplied: Multiplied | None = None
    ring: Ring | None = None

    @cached_property
    def all(self) -> tuple[Nest, ...]:
        """The nest, and those of the stages computed in it, in theirs, and so on."""
        inside = (stage.nest for stage in self.attached if stage.nest is not None)
        return (self, *(each for nest in inside for each in nest.all))

    def band_start(self, band: int) -> int:
        """The position of the first loop of ``band``, or the number of loops."""
        return next((i for i, loop in enumerate(self.loops) if loop.band >= band), len(self.loops))

    @cached_property
    def thread_loops(self) -> tuple[Loop, ...]:
        """Those over the threads of a block, the outermost first."""
        return tuple(loop for loop in self.loops if loop.bound in THREADS)

    @cached_property
    def threads(self) -> Number:
        """The threads that its loops are bound to; 0 where none is."""
        return product(loop.trip for loop in self.thread_loops) if self.thread_loops else 0

    @cached_property
    def last_space(self) -> int:
        """The first band of the innermost run of space loops: of the innermost tile. Places may cut a run into several bands."""
        last = max((band for band, reduces in enumerate(self.bands) if not reduces), default=0)
        return self._run(last)

    @cached_property
    def inner_reduction(self) -> int | None:
        """The first band of the run of reduction loops right around the innermost tile, if there is one."""
        band = self.last_space - 1
        return self._run(band) if isinstance(self.anchor.body, Reduce) and band >= 0 and self.bands[band] else None

    def _run(self, band: int) -> int:
        """The first band of the run of like ones that ends with ``band``."""
        while band > 0 and self.bands[band - 1] == self.bands[band]:
            band -= 1
        return band

    @cached_property
    def vector(self) -> Number:
        """Whether the innermost loop is vectorised."""
        return self.lanes > 1

    @cached_property
    def in_lanes(self) -> Number:
        """Whether it is a reduction that is vectorised: each element is summed in lanes of partial results."""
        return both(self.vector, bool(self.loops) and self.loops[-1].reduce)

    def expanded(self, position: int) -> Number:
        """Whether the loop is no loop in the machine code: of one iteration, unrolled, or the vectorised one."""
        loop = self.loops[position]
        if loop.bound is not None:
            return 0
        inside = either(loop.unrolled, equal(loop.trip, 1))
        return either(inside, self.vector) if position == len(self.loops) - 1 else inside

    @cached_property
    def promoted(self) -> Number:
        """Whether accumulators move to registers while the inner reduction runs around the innermost tile."""
        band = self.inner_reduction
        if band is None:
            return 0
        straight = every(self.expanded(position) for position, loop in enumerate(self.loops) if loop.band >= self.last_space)
        runs: Number = 0
        for loop in self.loops:
            if loop.band >= band and loop.reduce:
                runs = either(runs, loop.trip > 1)
        return either(both(straight, runs), self.in_lanes)

    @cached_property
    def tile_is_constant(self) -> Number:
        """Whether every index of the local tile of accumulators is constant, so that it is registers itself."""
        if self.epilogue is None or self.scope is Scope.LOCAL:
            return 0
        space = (position for position, loop in enumerate(self.loops) if not loop.reduce)
        return every(either(self.expanded(position), self.loops[position].band < self.epilogue_at) for position in space)

    @cached_property
    def apart(self) -> Number:
        """Whether the promoted accumulators are a buffer apart from the tile, filled from it and moved back."""
        return both(self.promoted, either(self.in_lanes, negated(self.tile_is_constant)))

    @cached_property
    def sizes(self) -> tuple[dict[Axis, Number], ...]:
        """For each number of bands entered, how much of each axis is left below: ``sizes[0]`` is everything."""
        current: dict[Axis, Number] = dict(self.extents)
        result = [dict(current)]
        for band in range(len(self.bands)):
            for position, loop in enumerate(self.loops):
                if loop.band == band:
                    current[loop.axis] = self.left(position)
            result.append(dict(current))
        return tuple(result)

    def left(self, position: int) -> Number:
        """How much of its axis the loops inside of the loop at ``position`` walk."""
        loop = self.loops[position]
        if loop.axis not in self.mixed:
            return loop.step
        # From the outermost level in: as far as each goes, and as the spans that it is in allow.
        inside = set(self.loops[position + 1 :])
        reach: Number = 0
        room: Number = self.extents[loop.axis] - 1
        for level in sorted((other for other in self.loops if other.axis is loop.axis), key=lambda other: other.depth):
            room = minimum(room, level.span - 1)
            if level in inside and level.name in self.cut:
                here = minimum(level.trip - 1, floor(room / level.step)) * level.step
                reach, room = reach + here, room - here
            elif level in inside:
                reach, room = reach + level.span - level.step, level.step - 1
        return 1 + reach

    @cached_property
    def reaches(self) -> tuple[dict[Axis, Number], ...]:
        """As :attr:`sizes`, with the last run of a reduction loop, which may be a short one, counted whole."""
        current: dict[Axis, Number] = dict(self.sizes[-1])
        result = [dict(current)]
        for band in reversed(range(len(self.bands))):
            current |= {axis: size for axis, size in self.sizes[band].items() if not axis.reduce}
            for loop in reversed(self.loops):
                if loop.band == band and loop.axis.reduce:
                    current[loop.axis] = (loop.trip - 1) * loop.step + current[loop.axis]
            result.append(dict(current))
        return tuple(reversed(result))


@dataclass(frozen=True, eq=False)
class Program:
    """The program of a row, or those of a population.

    Attributes:
        dag: the stages, after the steps that change them.
        nests: in the order in which they run.
        parts: for the partial results of an rfactor: how many there are, by the axes ``r`` that count them.
        valid: flag: whether the choices go together at all.
        pads: of buffers with padded strides: for each dimension the elements behind a run along it.
        swizzles: of buffers whose chunks may change places from row to row: how many.
    """

    dag: ComputeDAG
    nests: tuple[Nest, ...]
    parts: Mapping[Axis, Number]
    valid: Number
    pads: Mapping[Tensor, tuple[Number, ...]]
    swizzles: Mapping[Tensor, Number]
