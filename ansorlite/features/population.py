"""Facts of a whole population, from the nests of the fold. No program is lowered."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansorlite.alignment import CACHE_LINE
from ansorlite.analysis.access import accesses, axes_of, positions
from ansorlite.analysis.branches import branch_axes, region_loops
from ansorlite.columns.arithmetic import (
    both,
    ceil,
    either,
    equal,
    every,
    floor,
    maximum,
    minimum,
    negated,
    product,
    some,
    total,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.features.copies import copy_facts
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.features.loops_around import Around, Loops, Steps, by_depth
from ansorlite.features.matrix import matrix_facts
from ansorlite.features.nest_view import NestView
from ansorlite.schedule.nest import Attached, Fetched, Program
from ansorlite.schedule.padding import strides
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Reduce
from ansorlite.te.ops import BinaryOp
from ansorlite.te.tensor import Tensor


def population_facts(program: Program, matrix_dots: frozenset[BinaryOp] = frozenset()) -> Iterator[StatementFacts]:
    """The statements of the program, in an order that depends on the sketch alone.

    What is prepared before the first call costs nothing, and is not among them. ``matrix_dots``: for which dot products the
    target has matrix units.
    """
    for nest in program.nests:
        if not nest.prepared:
            yield from NestStatements(nest, program, matrix_dots=matrix_dots).facts()


def _one_more(around: Mapping[Hashable, Number], name: str, own: Number) -> Mapping[Hashable, Number]:
    """The parallel loops ``around``, and one named so, which is a parallel loop where ``own`` says so and none is around it."""
    return {**around, name: both(own, negated(some(around.values())))}


@dataclass(frozen=True, eq=False)
class _OwnLoop:
    """A loop over a stage's box."""

    axis: Axis
    trip: Number
    step: Number = 1
    vector: bool = False


class NestStatements(NestView):
    """The statements of a nest."""

    def facts(self) -> Iterator[StatementFacts]:
        """The statements of the nest, and of those inside of it."""
        for stage in self.nest.attached:
            if stage.prepared:
                continue
            if stage.nest is None:
                yield self.in_team(self.attached(stage), self.teams(stage.at))
            else:
                yield from NestStatements(stage.nest, self.program, self.around_region(stage), self.matrix_dots).facts()
        copies = (pack for pack in self.nest.packed if not pack.prepared)
        yield from (self.in_team(copy_facts(self, pack), self.teams(pack.at)) for pack in copies)
        yield self.in_team(self.anchor(), {} if self.around is None else self.around.teams)
        if self.nest.epilogue is not None:
            yield self.in_team(self.epilogue(), self.teams(self.nest.epilogue_at))

    def teams(self, at: Number) -> Mapping[Hashable, Number]:
        """The parallel loops around place ``at``."""
        around = {} if self.around is None else self.around.teams
        loops = zip(self.parallel, self.trips, self.outside(at), strict=True)
        own = some(every((flag, trip > 1, here)) for flag, trip, here in loops)
        return _one_more(around, self.nest.anchor.name, own)

    def in_team(self, facts: StatementFacts, around: Mapping[Hashable, Number]) -> StatementFacts:
        """The facts of a statement which these parallel loops are around; if none is, its own may be."""
        own = some(both(flag, trip > 1) for flag, trip in zip(facts.parallel, facts.trips, strict=True))
        return replace(facts, teams=_one_more(around, facts.name, own))

    def around_region(self, stage: Attached) -> Around:
        """The loops around the region of a stage."""
        outside = self.outside(stage.at)
        trips = [where(here, trip, 1) for here, trip in zip(outside, self.trips, strict=True)]
        parallel = [both(flag, here) for flag, here in zip(self.parallel, outside, strict=True)]
        unrolled = [both(flag, here) for flag, here in zip(self.straight(outside), outside, strict=True)]
        walks = [self.walked(stage, walk) for walk in self.walks]
        sizes = {axis: self.region_sizes(stage, axis, (), outside) for axis in axes_of(stage.tensor)}
        steps, teams = self.steps_of_box(stage), self.teams(stage.at)
        return Around(trips, parallel, unrolled, steps, self.fused, walks, sizes, self.places, teams)

    # The anchor and its epilogue --------------------------------------------------------------------------------------

    def anchor(self) -> StatementFacts:
        nest = self.nest
        # Accumulators of their own live only while the inner reduction runs: loops around it add to others.
        reduce = [both(loop.reduce, negated(both(nest.apart, loop.band < (nest.inner_reduction or 0)))) for loop in self.loops]
        kinds = (self.trips, self.parallel, self.straight([1] * len(self.loops)), self.vector, reduce)
        loops = Loops(self.numbers, *kinds, tuple(self.walks), self.sizes, nest.lanes, self.steps, self.fused)
        streamed = nest.streamed if nest.epilogue is None else 0
        packs = {p.tensor: p for p in nest.packed}
        inside = self.anchor_in_registers()
        found = self.statement(nest.anchor, loops, inside, self.home(loops), packs=packs, streamed=streamed)
        if self.matrix_dots:
            found = replace(found, matrix=matrix_facts(self, inside, self.matrix_dots))
        return replace(found, fetched=total(self.fetched(each) for each in nest.fetched), needed=self.left_out.needed)

    def fetched(self, ahead: Fetched) -> Number:
        """How many lines are asked for ahead (``loops/fetch_ahead.py``)."""
        nest, tensor = self.nest, ahead.tensor
        (access,) = (access for access in accesses(nest.anchor) if access.tensor is tensor)
        at = nest.loops[ahead.loop]
        line = CACHE_LINE // dtypes.size(tensor.dtype)
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

    def home(self, loops: Loops) -> AccessFacts | None:
        """Where the anchor's elements add up: in a tile indexed by loops, or (``None``) in the anchor's own buffer."""
        if self.nest.epilogue is None:
            return None if self.around is None else self.stored_in_box(self.nest.anchor, loops, len(self.around.trips))
        return self.loop_indexed(loops, self.nest.epilogue_at, self.space(), dtypes.size(self.nest.anchor.dtype), write=True)

    def anchor_in_registers(self) -> Number:
        """Whether the anchor's statement accumulates at constant indices, and whether what it adds up stays there."""
        nest = self.nest
        if not isinstance(nest.anchor.body, Reduce):
            return 0
        tile = (p for p, loop in enumerate(nest.loops) if not loop.reduce and loop.band >= nest.last_space)
        inside = where(nest.in_lanes, every(map(nest.expanded, tile)), either(nest.promoted, nest.tile_is_constant))
        return inside + every((inside, nest.tile_is_constant, negated(nest.apart)))

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
        straight = self.straight(self.outside(nest.epilogue_at))
        loops = replace(self.inside_nest(runs, self.parallel, straight, axes, sizes), steps=steps)
        return self.statement(epilogue, loops, 0, tile=nest.anchor, streamed=nest.streamed)

    def inside_nest(
        self,
        runs: Numbers,
        parallel: Numbers,
        unrolled: Numbers,
        axes: tuple[frozenset[Axis], ...],
        sizes: Mapping[Axis, Numbers],
    ) -> Loops:
        """The loops of the nest around a statement that is not the anchor's, for which those that do not run are not there."""
        trips = [where(here, trip, 1) for here, trip in zip(runs, self.trips, strict=True)]
        real = [trip > 1 for trip in trips]
        vector = [both(flag, there) for flag, there in zip(self.vector, real, strict=True)]
        unrolled = [both(flag, there) for flag, there in zip(unrolled, real, strict=True)]
        lanes = where(vector[-1], self.nest.lanes, 1) if vector else self.nest.lanes
        return Loops(
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
        unrolled = [both(flag, here) for flag, here in zip(self.straight(outside), outside, strict=True)]
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
        loops = Loops(self.numbers, *kinds, tuple(axes), sizes, stage.lanes, steps, fused)
        return self.statement(tensor, loops, isinstance(tensor.body, Reduce), self.stored_in_box(tensor, loops, len(none)))

    def stored_in_box(self, tensor: Tensor, loops: Loops, around: int) -> AccessFacts:
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
        dims = zip(stage.tensor.axes, stage.region, stage.tensor.shape, stage.lengths, strict=True)
        boxes = [(axis, box, maximum(extent - length - box.constant, 0)) for axis, box, extent, length in dims if box is not None]

        def scaled(by: int, step: Number, span: Number | None, furthest: Number) -> tuple[Number, Number]:
            # The span is that of the corner: a step more than its last place, beyond which the box would end.
            end = by * step + furthest
            return by * step, end if span is None else minimum(by * span, end)

        terms = [(axis, term, abs(c), furthest) for axis, box, furthest in boxes for term, c in box.terms]
        return [
            {axis: scaled(by, *steps[term], furthest) for axis, term, by, furthest in terms if term in steps}
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
                around = by_depth(lambda left: box.length(left, extent), self.reaches, axes, len(fixed))
            result = [where(inside, length, here) for inside, here in zip(fixed, around, strict=True)]
        for loop in own:
            result.append(minimum(loop.step, result[-1]) if loop.axis is axis else result[-1])
        return result

    # Accesses ---------------------------------------------------------------------------------------------------------
