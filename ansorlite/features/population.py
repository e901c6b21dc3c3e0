"""Facts of a whole population, from the nests of the fold. No program is lowered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

from ansorlite.analysis.access import Access, accesses, axes_of, positions
from ansorlite.analysis.branches import branch_axes, region_loops
from ansorlite.columns.arithmetic import (
    along,
    both,
    ceil,
    either,
    equal,
    every,
    floor,
    largest,
    maximum,
    minimum,
    negated,
    product,
    select,
    total,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.features.fused import joined
from ansorlite.features.memory import LINE
from ansorlite.features.operations import operations
from ansorlite.loops.nodes import index
from ansorlite.once import once_for_each
from ansorlite.schedule.nest import Attached, CopyLoop, Fetched, Loop, Nest, Packed, Program
from ansorlite.schedule.padding import strides
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.regions import Box
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Reduce
from ansorlite.te.index.form import Affine
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.index.strides import moves, step, width
from ansorlite.te.rewriting import with_body
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import reads


def population_facts(program: Program) -> Iterator[StatementFacts]:
    """The statements of the program, in an order that depends on the sketch alone.

    What is prepared before the first call costs nothing, and is not among them.
    """
    for nest in program.nests:
        if not nest.prepared:
            yield from _NestView(nest, program).facts()


#: By axis how far an iteration of a loop moves, and the span that its last one is shifted into; ``None`` where that is not.
Steps: TypeAlias = Mapping[Axis, tuple[Number, Number | None]]


@dataclass(frozen=True, eq=False)
class _Loops:
    """The loops around a statement, the axes that each walks, and by depth how much of each axis is left below.

    Attributes:
        numbers: by loop, the outermost first, as far as they are those of the nest: which of these each is.
        steps: by loop, for axes: how far it moves; without an entry, as far as what is left below.
        fused: by loop: the fused loop that it is a part of.
    """

    numbers: Sequence[int]
    trips: Numbers
    parallel: Numbers
    unrolled: Numbers
    vector: Numbers
    reduce: Numbers
    axes: tuple[frozenset[Axis], ...]
    sizes: Mapping[Axis, Numbers]
    lanes: Number
    steps: Sequence[Steps]
    fused: Sequence[LoopRef | None]


_NONE: Final[Mapping[str, Number]] = {}


@dataclass(frozen=True, eq=False)
class _Around:
    """The loops around the region of a stage, as its own nest sees them.

    Attributes:
        trips, parallel, unrolled, steps, fused: by loop.
        walks: by loop: which of the stage's axes the region moves along.
        sizes: of the stage's axes, by depth.
        places: of the regions that can be read there: the stage, and by loop whether it is around the region's place.
    """

    trips: Numbers
    parallel: Numbers
    unrolled: Numbers
    steps: Sequence[Steps]
    fused: Sequence[LoopRef | None]
    walks: Sequence[frozenset[Axis]]
    sizes: Mapping[Axis, Numbers]
    places: Mapping[Tensor, tuple[Attached, Numbers]]


@dataclass(frozen=True, eq=False)
class _OwnLoop:
    """A loop over a stage's box."""

    axis: Axis
    trip: Number
    step: Number = 1
    vector: bool = False


class _NestView:
    def __init__(self, nest: Nest, program: Program, around: _Around | None = None) -> None:
        self.nest = nest
        self.program = program
        self.parts = program.parts
        self.pads = program.pads
        self.around = around
        # A loop that is of one iteration in every program changes nothing but the time that this takes.
        own = [loop for loop in nest.loops if largest(loop.trip) > 1]
        # Those around the nest stand before all of its bands, and walk none of its axes.
        before = [] if around is None else [_loop_around(trip) for trip in around.trips]
        self.loops = [*before, *own]
        self.trips = [loop.trip for loop in self.loops]
        self.bands = [loop.band for loop in self.loops]
        self.numbers = range(len(self.loops))
        self.unrolled = [*(around.unrolled if around is not None else ()), *(loop.unrolled for loop in own)]
        self.vector = [*(0 for _ in before), *(both(nest.lanes > 1, depth == len(own) - 1) for depth in range(len(own)))]
        self.parallel = [
            *(around.parallel if around is not None else ()),
            *(nest.loops.index(loop) < nest.parallel for loop in own),
        ]
        self.steps: list[Steps] = [
            *(around.steps if around is not None else ()),
            *({loop.axis: (loop.step, None if loop.name in nest.cut else loop.span)} for loop in own),
        ]
        self.fused = [*(around.fused if around is not None else ()), *(loop.fused for loop in own)]
        self.walks = [*(around.walks if around is not None else ()), *(frozenset((loop.axis,)) for loop in own)]
        self.places: dict[Tensor, tuple[Attached, Numbers]] = {}
        self.flags: dict[Number, Numbers] = {}
        if around is not None:
            self.places |= {tensor: (of, [*flags, *(0 for _ in own)]) for tensor, (of, flags) in around.places.items()}
        self.places |= {stage.tensor: (stage, self.outside(stage.at)) for stage in nest.attached}
        self.sizes = {axis: self.axis_sizes(axis) for axis in axes_of(nest.anchor)}

    def facts(self) -> Iterator[StatementFacts]:
        """The statements of the nest, and of those inside of it."""
        for stage in self.nest.attached:
            if stage.prepared:
                continue
            if stage.nest is None:
                yield self.attached(stage)
            else:
                yield from _NestView(stage.nest, self.program, self.around_region(stage)).facts()
        yield from (self.packed(pack) for pack in self.nest.packed if not pack.prepared)
        yield self.anchor()
        if self.nest.epilogue is not None:
            yield self.epilogue()

    def around_region(self, stage: Attached) -> _Around:
        """The loops around the region of a stage."""
        outside = self.outside(stage.at)
        trips = [where(here, trip, 1) for here, trip in zip(outside, self.trips, strict=True)]
        parallel = [both(flag, here) for flag, here in zip(self.parallel, outside, strict=True)]
        unrolled = [both(flag, here) for flag, here in zip(self.unrolled, outside, strict=True)]
        walks = [self.walked(stage, walk) for walk in self.walks]
        sizes = {axis: self.region_sizes(stage, axis, (), outside) for axis in axes_of(stage.tensor)}
        return _Around(trips, parallel, unrolled, self.steps_of_box(stage), self.fused, walks, sizes, self.places)

    def axis_sizes(self, axis: Axis) -> Numbers:
        """By depth how much of an anchor's axis the loops below walk."""
        if axis in self.parts and not axis.reduce and self.nest.factor is not None:
            return [self.parts[axis], *[1 for _ in self.loops]]
        result = [self.extent(axis)] if self.around is None else list(self.around.sizes[axis])
        for loop in self.loops[len(result) - 1 :]:
            result.append(self.nest.left(self.nest.loops.index(loop)) if loop.axis is axis else result[-1])
        return result

    @cached_property
    def reaches(self) -> Mapping[Axis, Numbers]:
        """As ``sizes``, with the last run of a reduction loop counted whole."""
        found = dict(self.sizes)
        for axis in self.nest.anchor.reduce_axes:
            below: list[Number] = [self.sizes[axis][-1]]
            for loop in reversed(self.loops):
                below.append((loop.trip - 1) * loop.step + below[-1] if loop.axis is axis else below[-1])
            found[axis] = below[::-1]
        return found

    def extent(self, axis: Axis) -> Number:
        return self.parts.get(axis, axis.extent)

    def outside(self, at: Number) -> Numbers:
        """By loop of the nest: whether it is around place ``at``."""
        if at not in self.flags:
            self.flags[at] = [band < at for band in self.bands]
        return self.flags[at]

    # The anchor and its epilogue --------------------------------------------------------------------------------------

    def anchor(self) -> StatementFacts:
        nest = self.nest
        # Accumulators of their own live only while the inner reduction runs: loops around it add to others.
        reduce = [both(loop.reduce, negated(both(nest.apart, loop.band < (nest.inner_reduction or 0)))) for loop in self.loops]
        kinds = (self.trips, self.parallel, self.unrolled, self.vector, reduce)
        loops = _Loops(self.numbers, *kinds, tuple(self.walks), self.sizes, nest.lanes, self.steps, self.fused)
        streamed = nest.streamed if nest.epilogue is None else 0
        packs = {p.tensor: p for p in nest.packed}
        found = self.statement(nest.anchor, loops, self.anchor_in_registers(), self.home(loops), packs=packs, streamed=streamed)
        return replace(found, fetched=total(self.fetched(each) for each in nest.fetched)) if nest.fetched else found

    def fetched(self, ahead: Fetched) -> Number:
        """How many lines are asked for ahead (``loops/fetch_ahead.py``)."""
        nest, tensor = self.nest, ahead.tensor
        (access,) = (access for access in accesses(nest.anchor) if access.tensor is tensor)
        at = nest.loops[ahead.loop]
        line = LINE // dtypes.size(tensor.dtype)
        pack = next((pack for pack in nest.packed if pack.tensor is tensor), None)
        copied = 0 if pack is None else pack.at <= at.band
        between = strides(self.extents(tensor), self.pads.get(tensor, ()))
        around = () if self.around is None else self.around.trips
        count: Number = product((*around, *(loop.trip for loop in nest.loops[: ahead.loop + 1])))
        within: Number = 1  # elements of the copy from one iteration of a loop to the next
        for loop in reversed(nest.loops):
            if loop.axis not in access.axes:
                continue
            # The last of two iterations may be shifted inwards.
            step = loop.step if loop.name in nest.cut else minimum(loop.step, loop.span - loop.step)
            moved = [form.coefficients.get(loop.axis, 0) if form is not None else 0 for form in access.dims]
            plain = total(by * apart for by, apart in zip(moved, between, strict=True)) * step
            if pack is not None:
                within = within + pack.pads.get(loop.name, 0)
            stride = maximum(where(copied, within, maximum(plain, 0 - plain)), 1)
            held = maximum(floor(line / stride), 1)
            lines = ceil(loop.trip / held) + (held > 1)
            there = both(loop.trip > 1, stride * loop.trip > line)
            if loop is not at and nest.loops.index(loop) > ahead.loop:
                count = count * where(there, lines, 1)
            if pack is not None:
                within = within * where(pack.at <= loop.band, loop.trip, 1)
        return where(at.trip > 1, count, 0)

    def home(self, loops: _Loops) -> AccessFacts | None:
        """Where the anchor's elements add up: in a tile indexed by loops, or (``None``) in the anchor's own buffer."""
        if self.nest.epilogue is None:
            return None if self.around is None else self.stored_in_box(self.nest.anchor, loops, len(self.around.trips))
        return self.loop_indexed(loops, self.nest.epilogue_at, self.space(), dtypes.size(self.nest.anchor.dtype), write=True)

    def space(self) -> list[bool]:
        return [not loop.reduce for loop in self.loops]

    def anchor_in_registers(self) -> Number:
        """Whether the anchor's statement accumulates at constant indices."""
        nest = self.nest
        if not isinstance(nest.anchor.body, Reduce):
            return 0
        tile = (p for p, loop in enumerate(nest.loops) if not loop.reduce and loop.band >= nest.last_space)
        return where(nest.in_lanes, every(map(nest.expanded, tile)), either(nest.promoted, nest.tile_is_constant))

    def epilogue(self) -> StatementFacts:
        """The epilogue runs in the anchor's outer loops and in the space loops of its tile."""
        nest, epilogue = self.nest, self.nest.epilogue
        assert epilogue is not None
        own = dict(zip(epilogue.axes, nest.anchor.axes, strict=True))
        sizes = {axis: self.sizes[leader] for axis, leader in own.items()}
        back = {leader: axis for axis, leader in own.items()}
        factor = frozenset((epilogue.axes[0],)) if nest.factor is not None else frozenset()
        axes = tuple(
            frozenset((back[loop.axis],)) if loop.axis in back else factor if loop.axis is nest.factor else frozenset()
            for loop in self.loops
        )
        runs = [either(space, outside) for space, outside in zip(self.space(), self.outside(nest.epilogue_at), strict=True)]
        steps = [{back[axis]: step for axis, step in each.items() if axis in back} for each in self.steps]
        loops = replace(self.inside_nest(runs, self.parallel, self.unrolled, axes, sizes), steps=steps)
        return self.statement(epilogue, loops, 0, tile=nest.anchor, streamed=nest.streamed)

    def inside_nest(
        self,
        runs: Numbers,
        parallel: Numbers,
        unrolled: Numbers,
        axes: tuple[frozenset[Axis], ...],
        sizes: Mapping[Axis, Numbers],
    ) -> _Loops:
        """The loops of the nest around a statement that is not the anchor's, for which those that do not run are not there."""
        trips = [where(here, trip, 1) for here, trip in zip(runs, self.trips, strict=True)]
        real = [trip > 1 for trip in trips]
        vector = [both(flag, there) for flag, there in zip(self.vector, real, strict=True)]
        unrolled = [both(flag, there) for flag, there in zip(unrolled, real, strict=True)]
        lanes = where(vector[-1], self.nest.lanes, 1) if vector else self.nest.lanes
        return _Loops(
            self.numbers, trips, parallel, unrolled, vector, [0] * len(trips), axes, sizes, lanes, self.steps, self.fused
        )

    # Region stages and packed copies ----------------------------------------------------------------------------------

    def attached(self, stage: Attached) -> StatementFacts:
        """A region stage runs in the loops before its place, then in loops over its box."""
        tensor = stage.tensor
        outside = self.outside(stage.at)
        own = self.region_loops(stage)
        trips = [where(here, trip, 1) for here, trip in zip(outside, self.trips, strict=True)]
        parallel = [both(flag, here) for flag, here in zip(self.parallel, outside, strict=True)]
        axes = [self.walked(stage, walk) for walk in self.walks]
        none = [0] * len(trips)
        unrolled = [both(flag, here) for flag, here in zip(self.unrolled, outside, strict=True)]
        vector, reduce = list[Number](none), list[Number](none)
        written_out, space_seen = branch_axes(tensor), 0
        for loop in own:
            trips.append(loop.trip)
            axes.append(frozenset((loop.axis,)))
            reduce.append(loop.axis.reduce)
            vector.append(both(loop.vector, stage.lanes > 1))
            space = not loop.axis.reduce and not loop.vector
            parallel.append(both(space, space_seen < stage.parallel))
            space_seen += space
            runs_on = every((loop.trip > 1, negated(vector[-1]), negated(parallel[-1])))
            unrolled.append(both(loop.axis in written_out, runs_on))
        steps: list[Steps] = [*self.steps_of_box(stage), *({} for _ in own)]
        sizes = {axis: self.region_sizes(stage, axis, own, outside) for axis in axes_of(tensor)}
        kinds = (trips, parallel, unrolled, vector, reduce)
        fused = [*self.fused, *(None for _ in own)]
        loops = _Loops(self.numbers, *kinds, tuple(axes), sizes, stage.lanes, steps, fused)
        return self.statement(tensor, loops, isinstance(tensor.body, Reduce), self.stored_in_box(tensor, loops, len(none)))

    def stored_in_box(self, tensor: Tensor, loops: _Loops, around: int) -> AccessFacts:
        """What a stage stores into its box. Seen from the corner of that, the ``around`` outer loops move nothing."""
        home = self.write_facts(tensor, loops)
        return replace(home, moves=[*(0 for _ in range(around)), *home.moves[around:]])

    def region_loops(self, stage: Attached) -> list[_OwnLoop]:
        """The loops over a box, as ``schedule/lower_region.py`` nests them."""
        tensor, lane, vector = stage.tensor, stage.lane_axis, stage.lanes > 1
        number = positions(tensor)
        reduction = isinstance(tensor.body, Reduce)
        loops = [_OwnLoop(axis, stage.lengths[number[axis]]) for axis in region_loops(tensor, lane)]
        if lane is not None and not lane.reduce:
            length = stage.lengths[number[lane]]
            if not reduction:
                return [*loops, _OwnLoop(lane, length, vector=True)]
            loops.append(_OwnLoop(lane, where(vector, ceil(length / stage.lanes), length), where(vector, stage.lanes, 1)))
        loops += [_OwnLoop(axis, self.extent(axis)) for axis in tensor.reduce_axes if axis is not lane]
        if lane is not None and lane.reduce:
            loops.append(_OwnLoop(lane, ceil(self.extent(lane) / stage.lanes), stage.lanes))
        if lane is not None and (lane.reduce or reduction):
            loops.append(_OwnLoop(lane, where(vector, stage.lanes, 1), vector=True))
        return loops

    def walked(self, stage: Attached, walk: frozenset[Axis]) -> frozenset[Axis]:
        """The axes along which the corner of the stage's box moves with a loop that walks some of the anchor's."""
        boxes = zip(stage.tensor.axes, stage.region, strict=True)
        return frozenset(axis for axis, box in boxes if box is not None and any(term in walk for term, _ in box.terms))

    def steps_of_box(self, stage: Attached) -> list[Steps]:
        """By loop of the nest, how far an iteration moves the stage's box, where that is not what is left below."""
        terms = [(axis, box.terms) for axis, box in zip(stage.tensor.axes, stage.region, strict=True) if box is not None]

        def scaled(by: int, step: Number, span: Number | None) -> tuple[Number, Number | None]:
            # The span is that of the corner: a step more than its last place.
            return by * step, None if span is None else by * span

        return [
            {axis: scaled(abs(c), *steps[term]) for axis, all_ in terms for term, c in all_ if term in steps}
            for steps in self.steps
        ]

    def region_sizes(self, stage: Attached, axis: Axis, own: Sequence[_OwnLoop], outside: Numbers) -> Numbers:
        """By depth how much of an axis of the stage is walked: boxes of the anchor's tiles first, then its own loops."""
        if axis.reduce:
            result = [self.extent(axis)] * (len(outside) + 1)
        else:
            d = positions(stage.tensor)[axis]
            box, extent, length = stage.region[d], stage.tensor.shape[d], stage.lengths[d]
            # Below the place the box is fixed, and so it is at the root, where all of the stage is computed.
            fixed = (equal(stage.at, 0) if self.around is None else 0, *map(negated, outside))
            around: list[Number] = [extent] * len(fixed)
            if box is not None:
                axes = [a for a, _ in box.terms]
                around = _by_depth(lambda left: box.length(left, extent), self.reaches, axes, len(fixed))
            result = [where(inside, length, here) for inside, here in zip(fixed, around, strict=True)]
        for loop in own:
            result.append(minimum(loop.step, result[-1]) if loop.axis is axis else result[-1])
        return result

    def packed(self, pack: Packed) -> StatementFacts:
        """A packed copy runs in the loops before its place, then in loops of its own."""
        walked, dims = self.nest.loops, frozenset(pack.copy.axes)
        own = [loop for loop in pack.loops if any(largest(walked[position].trip) > 1 for position, _ in loop.parts)]
        further = 0 if self.around is None else len(self.around.trips)
        trips, parallel = list(self.trips[:further]), list(self.parallel[:further])
        unrolled = [both(flag, trip > 1) for flag, trip in zip(self.unrolled, trips, strict=False)]
        sizes = {axis: list(self.sizes[axis][: further + 1]) for axis in pack.copy.axes}
        steps = list(self.steps[:further])
        for loop in own:
            position = loop.parts[0][0]
            around = 0 if loop.moved else walked[position].band < pack.at
            trips.append(where(around, walked[position].trip, loop.trip))
            parallel.append(where(around, position < self.nest.parallel, loop.parallel))
            unrolled.append(both(where(around, walked[position].unrolled, loop.unrolled), trips[-1] > 1))
            left = {axis: found[-1] for axis, found in sizes.items()}
            step: dict[Axis, tuple[Number, Number | None]] = {}
            for position, here in loop.parts:
                axis = walked[position].axis
                if axis in self.nest.mixed:
                    step[axis] = where(either(here, around), walked[position].step, step[axis][0] if axis in step else 0), None
                if axis in dims:
                    # One of a single iteration may stay where one outside of it is moved.
                    walks = both(either(here, around), here == 1 or walked[position].trip > 1)
                    left[axis] = where(walks, self.nest.left(position), left[axis])
            for axis, by_depth in sizes.items():
                by_depth.append(left[axis])
            steps.append(step)
        none: Numbers = [0] * further
        vector = [*none, *(both(loop.lanes > 1, trip > 1) for loop, trip in zip(own, trips[further:], strict=True))]
        lanes: Number = 1
        for loop, flag in zip(own, vector[further:], strict=True):
            lanes = where(flag, loop.lanes, lanes)
        by_loop = (frozenset(walked[position].axis for position, _ in loop.parts) & dims for loop in own)
        axes = (*(walk & dims for walk in self.walks[:further]), *by_loop)
        kinds = (trips, parallel, unrolled, vector, [0] * len(trips))
        fused = [*self.fused[:further], *(None if loop.moved else walked[loop.parts[0][0]].fused for loop in own)]
        loops = _Loops(self.copy_numbers(own, further), *kinds, axes, sizes, lanes, steps, fused)
        element, lane = _distinct(pack.copy), walked[-1].axis if walked and walked[-1].axis in dims else None
        found = [self.read_facts(access, loops, lane=lane) for access in accesses(element)]
        found = [replace(facts, lane_stride=where(pack.transposed, 1, facts.lane_stride)) for facts in found]
        return _facts(pack.copy.name, element, loops, 0, False, (*found, self.stored_copy(pack, own, loops, further)))

    def copy_numbers(self, own: Sequence[CopyLoop], further: int) -> Sequence[int]:
        """Which loops of the nest those of a packed copy are; one that is moved is where the next one is."""
        number = {loop.name: number for number, loop in enumerate(self.loops) if number >= further}
        result: list[int] = []
        for loop in reversed(own):
            if not loop.moved:
                result.append(number[self.nest.loops[loop.parts[0][0]].name])
            elif result:
                result.append(result[-1])
        return [*range(further), *reversed(result)]

    def stored_copy(self, pack: Packed, own: Sequence[CopyLoop], loops: _Loops, further: int) -> AccessFacts:
        """Where a packed copy is stored: a dimension is a loop of the nest, whichever loop walks it.

        ``further`` loops are around the nest.
        """
        walkers: dict[int, list[tuple[int, Number]]] = {}
        for depth, copying in enumerate(own, further):
            for position, here in copying.parts:
                walkers.setdefault(position, []).append((depth, here))
        dims = frozenset(pack.copy.axes)
        extents: list[Number] = []
        widths: list[Numbers] = []
        behind: list[Number] = [0]
        moved: list[Number] = [0] * len(loops.trips)
        for position, by in sorted(walkers.items()):
            loop = self.nest.loops[position]
            if loop.axis not in dims:
                continue
            trip = where(loop.band >= pack.at, loop.trip, 1)
            below = [total(here for walker, here in by if walker >= depth) for depth in range(len(loops.trips) + 1)]
            widths.append([where(flag, trip, 1) for flag in below])
            extents.append(trip)
            behind.append(pack.pads.get(loop.name, 0))
            for depth, here in by:
                moved[depth] = either(moved[depth], both(here, trip > 1))
        stride = where(loops.lanes > 1, where(pack.transposed, 2, 1), 0)
        item = dtypes.size(pack.tensor.dtype)
        pads = tuple(behind[: len(extents)]) if pack.pads else ()
        renewed = self.renewed(self.outside(pack.at), loops)
        return AccessFacts(tuple(widths), tuple(extents), item, 0, moved, stride, True, renewed, pads)

    # Accesses ---------------------------------------------------------------------------------------------------------

    def statement(
        self,
        tensor: Tensor,
        loops: _Loops,
        in_registers: Number,
        home: AccessFacts | None = None,
        packs: Mapping[Tensor, Packed] | None = None,
        tile: Tensor | None = None,
        streamed: Number = 0,
    ) -> StatementFacts:
        found: list[AccessFacts] = []
        read: dict[Hashable, AccessFacts] = {}
        distinct = _distinct(tensor)
        for access in accesses(distinct):
            if packs and access.tensor in packs:
                pack = packs[access.tensor]
                uses = [loop.axis in pack.copy.axes for loop in self.loops]
                item = dtypes.size(pack.tensor.dtype)
                found.append(self.loop_indexed(loops, pack.at, uses, item, write=False, pads=pack.pads))
            elif access.tensor is tile:
                found.append(
                    self.loop_indexed(loops, self.nest.epilogue_at, self.space(), dtypes.size(access.tensor.dtype), write=False)
                )
            else:
                walk = _walk(access)
                if walk not in read:
                    read[walk] = self.read_facts(access, loops)
                found.append(read[walk])
        found.append(home or self.write_facts(tensor, loops))
        accumulates = isinstance(tensor.body, Reduce)
        return _facts(tensor.name, distinct, loops, in_registers, accumulates, tuple(found), streamed)

    def extents(self, tensor: Tensor) -> tuple[Number, ...]:
        """The extents of the buffer that holds what a statement reads or writes of ``tensor``."""
        if tensor in self.places:
            return self.places[tensor][0].lengths
        return tuple(self.extent(axis) for axis in tensor.axes) if tensor.axes else tensor.shape

    def sizes_in_box(self, tensor: Tensor, dim: int, form: Affine, loops: _Loops) -> Mapping[Axis, Numbers]:
        """``loops.sizes`` for a read of ``tensor``: a box that moves along with outer loops is read from its own corner."""
        found = self.moving_box(tensor, dim)
        if found is None:
            return loops.sizes
        _, moving = found
        place = where(moving, total(self.renewed(self.places[tensor][1], loops)), 0)
        before = [depth < place for depth in range(len(loops.trips) + 1)]

        def at_the_place(sizes: Numbers) -> Numbers:
            there = select(sizes, place)
            return [where(flag, there, size) for flag, size in zip(before, sizes, strict=True)]

        plain = (term for term in form.coefficients if isinstance(term, Axis))
        return {**loops.sizes, **{axis: at_the_place(loops.sizes[axis]) for axis in plain}}

    def moving_box(self, tensor: Tensor, dim: int) -> tuple[Attached, Number] | None:
        """The stage whose box ``tensor`` is, and whether that moves along with outer loops; ``None`` if it never does."""
        stage = self.places[tensor][0] if tensor in self.places else None
        box = None if stage is None else stage.region[dim]
        if stage is None or box is None or not box.terms or _sticks_out(box, tensor.shape[dim]):
            return None
        return stage, both(either(stage.at > 0, self.around is not None), stage.lengths[dim] < tensor.shape[dim])

    def read_facts(
        self, access: Access, loops: _Loops, by_axes: tuple[Axis, ...] | None = None, lane: Axis | None = None
    ) -> AccessFacts:
        """``lane``: the axis of the lanes, if that is not the one of the last loop."""
        extents = self.extents(access.tensor)
        if lane is None and loops.axes:
            lane = next(iter(loops.axes[-1]), None)
        forms = access.dims if by_axes is None else tuple(Affine(((axis, 1),), 0) for axis in by_axes)
        widths: list[Numbers] = []
        lane_moves = False
        pads = self.pads.get(access.tensor, ())
        between = strides(extents, pads)
        apart: Number = 0  # elements between the first two lanes
        moved: Numbers = [0] * len(loops.trips)
        for position, (form, extent) in enumerate(zip(forms, extents, strict=True)):
            if form is None:
                widths.append([extent] * (len(loops.trips) + 1))
                lane_moves |= lane in access.axes
                here: Numbers = [bool(walked & access.axes) for walked in loops.axes]
            else:
                widths.append(
                    _widths(form, self.sizes_in_box(access.tensor, position, form, loops), len(loops.trips) + 1, extent)
                )
                here = [
                    _moves(form, walked & form.variables, loops, depth) if not walked.isdisjoint(form.variables) else 0
                    for depth, walked in enumerate(loops.axes)
                ]
                box = self.moving_box(access.tensor, position)
                if box is not None:
                    # Seen from the corner of the box, nothing moves with the loops that move it.
                    _, moving = box
                    fixed = [both(moving, flag) for flag in self.renewed(self.places[access.tensor][1], loops)]
                    here = [both(flag, negated(still)) for flag, still in zip(here, fixed, strict=True)]
                if lane is not None and lane in form.variables:
                    lane_moves = True
                    apart = apart + between[position] * step(form, lane)
            moved = [either(a, b) for a, b in zip(moved, here, strict=True)]
        stride = where(both(loops.lanes > 1, lane_moves), where(equal(apart, 1), 1, 2), 0)
        moved = [both(flag, trip > 1) for flag, trip in zip(moved, loops.trips, strict=True)]
        renewed = self.renewed(self.places[access.tensor][1] if access.tensor in self.places else (), loops)
        item = dtypes.size(access.tensor.dtype)
        pitch = access.tensor.shape[-1] * item if access.tensor.body is None and len(extents) > 1 else 0
        return AccessFacts(tuple(widths), extents, item, pitch, moved, stride, False, renewed, pads)

    def renewed(self, outside: Numbers, loops: _Loops) -> Numbers:
        """By loop: whether each iteration has a buffer of its own; ``outside``: which loops of the nest are around that."""
        numbers = loops.numbers if outside else ()
        return [*(outside[number] for number in numbers), *[0] * (len(loops.trips) - len(numbers))]

    def write_facts(self, tensor: Tensor, loops: _Loops) -> AccessFacts:
        facts = self.read_facts(Access(tensor, (), frozenset(tensor.axes)), loops, by_axes=tensor.axes)
        return replace(facts, write=True)

    def loop_indexed(
        self, loops: _Loops, at: Number, uses: Sequence[bool], item: int, write: bool, pads: Mapping[str, Number] = _NONE
    ) -> AccessFacts:
        """A buffer whose dimensions are the loops ``uses`` below place ``at``: contiguous in the order of use, but for ``pads``.

        These are by loop the elements behind what one iteration of it has.
        """
        inside = [both(used, band >= at) for used, band in zip(uses, self.bands, strict=True)]
        below: list[Number] = [1]
        for here, trip in zip(reversed(inside), reversed(self.trips), strict=True):
            below.append(below[-1] * where(here, trip, 1))
        below.reverse()
        moved = [both(here, trip > 1) for here, trip in zip(inside, loops.trips, strict=True)]
        stride = both(loops.lanes > 1, inside[-1]) if inside else 0
        renewed = self.renewed(self.outside(at), loops)
        if not pads:
            return AccessFacts((below,), (below[0],), item, 0, moved, stride, write, renewed)
        # A dimension for each loop: those that are not there are of one element.
        extents = [where(here, trip, 1) for here, trip in zip(inside, self.trips, strict=True)]
        widths = tuple([where(depth <= dim, extent, 1) for depth in range(len(below))] for dim, extent in enumerate(extents))
        behind = [0, *(pads.get(loop.name, 0) for loop in self.loops)][: len(extents)]
        return AccessFacts(widths, tuple(extents), item, 0, moved, stride, write, renewed, tuple(behind))


def _loop_around(trip: Number) -> Loop:
    """A loop around a nest, as one of a band before its first; it has no name there."""
    return Loop("", Axis("around", extent=1), 0, -1, False, 1, 1, trip, 0)


def _facts(
    name: str,
    distinct: Tensor,
    loops: _Loops,
    in_registers: Number,
    accumulates: bool,
    found: tuple[AccessFacts, ...],
    streamed: Number = 0,
) -> StatementFacts:
    assert distinct.body is not None
    counts = operations(distinct.body, {read: position for position, read in enumerate(reads(distinct.body))})
    kinds = (loops.trips, loops.parallel, loops.unrolled, loops.vector, loops.reduce)
    facts = StatementFacts(name, *kinds, loops.lanes, in_registers, accumulates, streamed, counts, found)
    return joined(facts, loops.fused)


@once_for_each
def _distinct(tensor: Tensor) -> Tensor:
    """``tensor`` as the loop IR has it: reads of one and the same element are one, arms that are never taken are gone."""
    assert tensor.body is not None
    algebra = IndexAlgebra()
    for axis in axes_of(tensor):
        if axis.extent == 1:
            algebra.bind_value(axis, 0)
        else:
            algebra.bind(axis, index(axis.extent))
    return with_body(tensor, algebra.simplify(tensor.body))


def _walk(access: Access) -> Hashable:
    """Reads with equal ones have the same facts: elements of one tensor that stay equally far apart."""
    return access.tensor, access.axes, tuple(_terms(form) for form in access.dims)


def _terms(form: Affine | None) -> Hashable:
    """The form without its constant, where that is of no consequence."""
    return form.terms if form is not None and all(isinstance(term, Axis) for term, _ in form.terms) else form


def _widths(form: Affine, sizes: Mapping[Axis, Numbers], depths: int, extent: Number) -> list[Number]:
    """By depth how many values a form takes, at most ``extent``."""
    used = [axis for axis in sizes if axis in form.variables]
    return _by_depth(lambda left: minimum(width(form, left), extent), sizes, used, depths)


def _by_depth(
    function: Callable[[Mapping[Axis, Number]], Number], sizes: Mapping[Axis, Numbers], axes: Sequence[Axis], depths: int
) -> list[Number]:
    """``function`` of how much of ``axes`` is left."""
    if not axes:
        return [function({})] * depths
    return along(lambda *left: function(dict(zip(axes, left, strict=True))), *(sizes[axis] for axis in axes))


def _sticks_out(box: Box, extent: int) -> bool:
    """Whether some box of these is shifted inwards at an edge, where its own corner is not what its form says."""
    low = box.constant + sum(min(c, 0) * (axis.extent - 1) for axis, c in box.terms)
    high = box.constant + box.extra + sum(max(c, 0) * (axis.extent - 1) for axis, c in box.terms)
    return low < 0 or high >= extent


def _moves(form: Affine, walked: Iterable[Axis], loops: _Loops, depth: int) -> Number:
    """Whether the form changes over the iterations of a loop that walks some of its axes, every other loop at its start."""
    own, trip = loops.steps[depth], loops.trips[depth]

    def by(axis: Axis) -> tuple[Number, Number]:
        step, span = own.get(axis, (loops.sizes[axis][depth + 1], None))
        last = (trip - 1) * step
        return step, last if span is None else minimum(last, span - step)

    return moves(form, {axis: by(axis) for axis in walked})
