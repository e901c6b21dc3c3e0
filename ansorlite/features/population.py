"""Facts of a whole population, from the nests of the fold. No program is lowered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ansorlite.analysis.access import Access, accesses, axes_of, positions
from ansorlite.analysis.branches import branch_axes, region_loops
from ansorlite.columns.arithmetic import (
    along,
    both,
    ceil,
    either,
    equal,
    every,
    largest,
    minimum,
    negated,
    product,
    select,
    total,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.features.operations import operations
from ansorlite.loops.nodes import index
from ansorlite.once import once_for_each
from ansorlite.schedule.nest import Attached, CopyLoop, Nest, Packed, Program
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
    lengths = {stage.tensor: stage.lengths for nest in program.nests for stage in nest.attached}
    for nest in program.nests:
        if nest.prepared:
            continue
        view = _NestView(nest, program.parts, lengths)
        yield from (view.attached(stage) for stage in nest.attached if not stage.prepared)
        yield from (view.packed(pack) for pack in nest.packed if not pack.prepared)
        yield view.anchor()
        if nest.epilogue is not None:
            yield view.epilogue()


@dataclass(frozen=True, eq=False)
class _Loops:
    """The loops around a statement, the bands of the nest that the first of them are of, the axes that each walks, and by depth
    how much of each axis is left below."""

    bands: Sequence[int]
    trips: Numbers
    parallel: Numbers
    unrolled: Numbers
    vector: Numbers
    reduce: Numbers
    axes: tuple[frozenset[Axis], ...]
    sizes: Mapping[Axis, Numbers]
    lanes: Number


@dataclass(frozen=True, eq=False)
class _OwnLoop:
    """A loop over a stage's box."""

    axis: Axis
    trip: Number
    step: Number = 1
    vector: bool = False


class _NestView:
    def __init__(self, nest: Nest, parts: Mapping[Axis, Number], lengths: Mapping[Tensor, tuple[Number, ...]]) -> None:
        self.nest = nest
        self.parts = parts
        self.lengths = lengths
        # A loop that is of one iteration in every program changes nothing but the time that this takes.
        self.loops = [loop for loop in nest.loops if largest(loop.trip) > 1]
        self.trips = [loop.trip for loop in self.loops]
        self.bands = [loop.band for loop in self.loops]
        self.unrolled = [loop.unrolled for loop in self.loops]
        self.vector = [both(nest.lanes > 1, depth == len(self.loops) - 1) for depth in range(len(self.loops))]
        self.parallel = [nest.loops.index(loop) < nest.parallel for loop in self.loops]
        self.places = {stage.tensor: stage.at for stage in nest.attached}
        self.sizes = {axis: self.axis_sizes(axis) for axis in axes_of(nest.anchor)}
        self.flags: dict[Number, Numbers] = {}

    def axis_sizes(self, axis: Axis) -> Numbers:
        """By depth how much of an anchor's axis the loops below walk."""
        if axis in self.parts and not axis.reduce and self.nest.factor is not None:
            return [self.parts[axis], *[1 for _ in self.loops]]
        result = [self.extent(axis)]
        for loop in self.loops:
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
        reduce = [both(loop.reduce, negated(both(nest.apart, loop.band < nest.last_space - 1))) for loop in self.loops]
        axes = tuple(frozenset((loop.axis,)) for loop in self.loops)
        loops = _Loops(self.bands, self.trips, self.parallel, self.unrolled, self.vector, reduce, axes, self.sizes, nest.lanes)
        streamed = nest.streamed if nest.epilogue is None else 0
        packs = {p.tensor: p for p in nest.packed}
        return self.statement(nest.anchor, loops, self.anchor_in_registers(), self.home(loops), packs=packs, streamed=streamed)

    def home(self, loops: _Loops) -> AccessFacts | None:
        """Where the anchor's elements add up: in a tile indexed by loops, or (``None``) in the anchor's own buffer."""
        if self.nest.epilogue is None:
            return None
        return self.loop_indexed(loops, self.nest.epilogue_at, self.space(), dtypes.size(self.nest.anchor.dtype), write=True)

    def space(self) -> list[bool]:
        return [not loop.reduce for loop in self.loops]

    def anchor_in_registers(self) -> Number:
        """Whether the anchor's statement accumulates at constant indices."""
        nest = self.nest
        if not isinstance(nest.anchor.body, Reduce):
            return 0
        tile = (p for p, loop in enumerate(nest.loops) if not loop.reduce and loop.band == nest.last_space)
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
        loops = self.inside_nest(runs, self.parallel, self.unrolled, axes, sizes)
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
        return _Loops(self.bands, trips, parallel, unrolled, vector, [0] * len(trips), axes, sizes, lanes)

    # Region stages and packed copies ----------------------------------------------------------------------------------

    def attached(self, stage: Attached) -> StatementFacts:
        """A region stage runs in the loops before its place, then in loops over its box."""
        tensor = stage.tensor
        outside = self.outside(stage.at)
        own = self.region_loops(stage)
        trips = [where(here, trip, 1) for here, trip in zip(outside, self.trips, strict=True)]
        parallel = [both(flag, here) for flag, here in zip(self.parallel, outside, strict=True)]
        axes = [frozenset(a for a in tensor.axes if self.touches(stage, a, loop.axis)) for loop in self.loops]
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
        sizes = {axis: self.region_sizes(stage, axis, own, outside) for axis in axes_of(tensor)}
        loops = _Loops(self.bands, trips, parallel, unrolled, vector, reduce, tuple(axes), sizes, stage.lanes)
        return self.statement(tensor, loops, isinstance(tensor.body, Reduce))

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

    def touches(self, stage: Attached, axis: Axis, outer: Axis) -> bool:
        """Whether the corner of the stage's box moves along ``axis`` with a loop over the anchor's ``outer``."""
        box = stage.region[positions(stage.tensor)[axis]]
        return box is not None and any(term is outer for term, _ in box.terms)

    def region_sizes(self, stage: Attached, axis: Axis, own: Sequence[_OwnLoop], outside: Numbers) -> Numbers:
        """By depth how much of an axis of the stage is walked: boxes of the anchor's tiles first, then its own loops."""
        if axis.reduce:
            result = [self.extent(axis)] * (len(outside) + 1)
        else:
            d = positions(stage.tensor)[axis]
            box, extent, length = stage.region[d], stage.tensor.shape[d], stage.lengths[d]
            # Below the place the box is fixed, and so it is at the root, where all of the stage is computed.
            fixed = (equal(stage.at, 0), *map(negated, outside))
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
        trips, parallel, unrolled = list[Number](), list[Number](), list[Number]()
        sizes = {axis: [self.sizes[axis][0]] for axis in pack.copy.axes}
        for loop in own:
            position = loop.parts[0][0]
            around = 0 if loop.moved else walked[position].band < pack.at
            trips.append(where(around, walked[position].trip, loop.trip))
            parallel.append(where(around, position < self.nest.parallel, loop.parallel))
            unrolled.append(both(where(around, walked[position].unrolled, loop.unrolled), trips[-1] > 1))
            left = {axis: found[-1] for axis, found in sizes.items()}
            for position, here in loop.parts:
                axis = walked[position].axis
                if axis in dims:
                    # One of a single iteration may stay where one outside of it is moved.
                    walks = both(either(here, around), here == 1 or walked[position].trip > 1)
                    left[axis] = where(walks, self.nest.left(position), left[axis])
            for axis, by_depth in sizes.items():
                by_depth.append(left[axis])
        vector = [both(loop.lanes > 1, trip > 1) for loop, trip in zip(own, trips, strict=True)]
        lanes: Number = 1
        for loop, flag in zip(own, vector, strict=True):
            lanes = where(flag, loop.lanes, lanes)
        bands = [len(self.nest.bands) if loop.moved else walked[loop.parts[0][0]].band for loop in own]
        axes = tuple(frozenset(walked[position].axis for position, _ in loop.parts) & dims for loop in own)
        loops = _Loops(bands, trips, parallel, unrolled, vector, [0] * len(trips), axes, sizes, lanes)
        element, lane = _distinct(pack.copy), walked[-1].axis if walked and walked[-1].axis in dims else None
        found = [self.read_facts(access, loops, lane=lane) for access in accesses(element)]
        found = [replace(facts, lane_stride=where(pack.transposed, 1, facts.lane_stride)) for facts in found]
        return _facts(pack.copy.name, element, loops, 0, False, (*found, self.stored_copy(pack, own, loops)))

    def stored_copy(self, pack: Packed, own: Sequence[CopyLoop], loops: _Loops) -> AccessFacts:
        """Where a packed copy is stored: a dimension is a loop of the nest, whichever loop walks it."""
        walkers: dict[int, list[tuple[int, Number]]] = {}
        for depth, copying in enumerate(own):
            for position, here in copying.parts:
                walkers.setdefault(position, []).append((depth, here))
        dims = frozenset(pack.copy.axes)
        extents: list[Number] = []
        widths: list[Numbers] = []
        moved: list[Number] = [0] * len(own)
        for position, by in sorted(walkers.items()):
            loop = self.nest.loops[position]
            if loop.axis not in dims:
                continue
            trip = where(loop.band >= pack.at, loop.trip, 1)
            below = [total(here for walker, here in by if walker >= depth) for depth in range(len(own) + 1)]
            widths.append([where(flag, trip, 1) for flag in below])
            extents.append(trip)
            for depth, here in by:
                moved[depth] = either(moved[depth], both(here, trip > 1))
        stride = where(loops.lanes > 1, where(pack.transposed, 2, 1), 0)
        item = dtypes.size(pack.tensor.dtype)
        return AccessFacts(tuple(widths), tuple(extents), item, 0, moved, stride, True, self.renewed(pack.at, loops))

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
                found.append(self.loop_indexed(loops, pack.at, uses, dtypes.size(pack.tensor.dtype), write=False))
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
        if tensor in self.lengths:
            return self.lengths[tensor]
        return tuple(self.extent(axis) for axis in tensor.axes) if tensor.axes else tensor.shape

    def sizes_in_box(self, tensor: Tensor, dim: int, form: Affine, loops: _Loops) -> Mapping[Axis, Numbers]:
        """``loops.sizes`` for a read of ``tensor``: a box that moves along with outer loops is read from its own corner."""
        found = self.moving_box(tensor, dim)
        if found is None:
            return loops.sizes
        stage, moving = found
        place = where(moving, total(self.outside(stage.at)), 0)
        before = [depth < place for depth in range(len(loops.trips) + 1)]

        def at_the_place(sizes: Numbers) -> Numbers:
            there = select(sizes, place)
            return [where(flag, there, size) for flag, size in zip(before, sizes, strict=True)]

        plain = (term for term in form.coefficients if isinstance(term, Axis))
        return {**loops.sizes, **{axis: at_the_place(loops.sizes[axis]) for axis in plain}}

    def moving_box(self, tensor: Tensor, dim: int) -> tuple[Attached, Number] | None:
        """The stage whose box ``tensor`` is, and whether that moves along with outer loops; ``None`` if it never does."""
        stage = next((stage for stage in self.nest.attached if stage.tensor is tensor), None)
        box = None if stage is None else stage.region[dim]
        if stage is None or box is None or not box.terms or _sticks_out(box, tensor.shape[dim]):
            return None
        return stage, both(stage.at > 0, stage.lengths[dim] < tensor.shape[dim])

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
                    stage, moving = box
                    fixed = [both(moving, flag) for flag in self.renewed(stage.at, loops)]
                    here = [both(flag, negated(still)) for flag, still in zip(here, fixed, strict=True)]
                if lane is not None and lane in form.variables:
                    lane_moves = True
                    apart = apart + product(extents[position + 1 :]) * step(form, lane)
            moved = [either(a, b) for a, b in zip(moved, here, strict=True)]
        stride = where(both(loops.lanes > 1, lane_moves), where(equal(apart, 1), 1, 2), 0)
        moved = [both(flag, trip > 1) for flag, trip in zip(moved, loops.trips, strict=True)]
        renewed = self.renewed(self.places.get(access.tensor, 0), loops)
        item = dtypes.size(access.tensor.dtype)
        pitch = access.tensor.shape[-1] * item if access.tensor.body is None and len(extents) > 1 else 0
        return AccessFacts(tuple(widths), extents, item, pitch, moved, stride, False, renewed)

    def renewed(self, at: Number, loops: _Loops) -> Numbers:
        """By loop: whether each iteration has a buffer of its own of what is computed at place ``at``."""
        return [*(band < at for band in loops.bands), *[0] * (len(loops.trips) - len(loops.bands))]

    def write_facts(self, tensor: Tensor, loops: _Loops) -> AccessFacts:
        facts = self.read_facts(Access(tensor, (), frozenset(tensor.axes)), loops, by_axes=tensor.axes)
        return replace(facts, write=True)

    def loop_indexed(self, loops: _Loops, at: Number, uses: Sequence[bool], item: int, write: bool) -> AccessFacts:
        """A buffer whose dimensions are the loops ``uses`` below place ``at``: contiguous in the order of use."""
        inside = [both(used, band >= at) for used, band in zip(uses, self.bands, strict=True)]
        below: list[Number] = [1]
        for here, trip in zip(reversed(inside), reversed(self.trips), strict=True):
            below.append(below[-1] * where(here, trip, 1))
        below.reverse()
        moved = [both(here, trip > 1) for here, trip in zip(inside, loops.trips, strict=True)]
        stride = both(loops.lanes > 1, inside[-1]) if inside else 0
        return AccessFacts((below,), (below[0],), item, 0, moved, stride, write, self.renewed(at, loops))


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
    return StatementFacts(name, *kinds, loops.lanes, in_registers, accumulates, streamed, counts, found)


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
    return moves(form, {axis: loops.sizes[axis][depth + 1] for axis in walked}, loops.trips[depth])
