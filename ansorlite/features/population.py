"""Facts of a whole population, from the columns of the fold. No program is lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ansorlite.analysis.access import Access, accesses, axes_of, positions
from ansorlite.analysis.affine import Affine, Quotient, Remainder
from ansorlite.analysis.branches import branch_axes, region_loops
from ansorlite.features.facts import AccessFacts, Flags, Numbers, Operations, StatementFacts
from ansorlite.features.operations import operations
from ansorlite.loops.index_algebra import IndexAlgebra
from ansorlite.loops.nodes import index
from ansorlite.schedule.fold import Attached, Column, Nest, Packed, Program
from ansorlite.schedule.regions import Box
from ansorlite.schedule.rewrite import with_body
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Read, Reduce
from ansorlite.te.tensor import Tensor


def population_facts(program: Program) -> Iterator[StatementFacts]:
    """The statements of the program, in an order that depends on the sketch alone; one by one, as each has megabytes of facts.

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
    """The loops around a statement, and how much of each axis is left below each depth: ``(D + 1, n)``."""

    trips: Numbers
    parallel: Flags
    unrolled: Flags
    vector: Flags
    reduce: Flags
    axes: tuple[frozenset[Axis], ...]
    sizes: Mapping[Axis, Numbers]
    lanes: Column


class _NestView:
    def __init__(self, nest: Nest, parts: Mapping[Axis, Column], lengths: Mapping[Tensor, tuple[Column, ...]]) -> None:
        self.nest = nest
        self.parts = parts
        self.lengths = lengths
        self.n = len(nest.lanes)
        # A loop that is of one iteration in every program changes nothing but the time that this takes.
        self.loops = [loop for loop in nest.loops if (loop.trip > 1).any()]
        self.trips = np.array([loop.trip for loop in self.loops], dtype=np.float64).reshape(-1, self.n)
        self.bands = np.array([loop.band for loop in self.loops])
        self.unrolled = np.array([loop.unrolled for loop in self.loops], dtype=bool).reshape(-1, self.n)
        place = {loop: position for position, loop in enumerate(nest.loops)}
        self.parallel = np.array([place[loop] for loop in self.loops], dtype=np.int64).reshape(-1, 1) < nest.parallel
        self.sizes = {axis: self.axis_sizes(axis) for axis in axes_of(nest.anchor)}

    def axis_sizes(self, axis: Axis) -> Numbers:
        """How much of an anchor's axis the loops below each depth walk."""
        result = np.empty((len(self.loops) + 1, self.n))
        result[0] = self.parts.get(axis, axis.extent)
        for depth, loop in enumerate(self.loops):
            result[depth + 1] = loop.step if loop.axis is axis else result[depth]
        factor = self.nest.factor
        if axis in self.parts and not axis.reduce and factor is not None:
            result[1:] = 1
        return result

    def vector(self) -> Flags:
        vector = np.zeros((len(self.loops), self.n), dtype=bool)
        if len(vector):
            vector[-1] = self.nest.lanes > 1
        return vector

    # The anchor and its epilogue --------------------------------------------------------------------------------------

    def anchor(self) -> StatementFacts:
        nest = self.nest
        reduce = np.array([[loop.reduce] for loop in self.loops], dtype=bool).reshape(-1, 1)
        # Accumulators of their own live only while the inner reduction runs: loops around it add to others.
        reduce = reduce & ~(nest.apart & (self.bands[:, None] < nest.last_space - 1))
        axes = tuple(frozenset((loop.axis,)) for loop in self.loops)
        loops = _Loops(self.trips, self.parallel, self.unrolled, self.vector(), reduce, axes, self.sizes, nest.lanes)
        return self.statement(
            nest.anchor, loops, self.anchor_in_registers(), self.home(loops), packs={p.tensor: p for p in nest.packed}
        )

    def home(self, loops: _Loops) -> AccessFacts | None:
        """Where the anchor's elements add up: in a tile indexed by loops, or (``None``) in the anchor's own buffer."""
        if self.nest.epilogue is None:
            return None
        space = np.array([not loop.reduce for loop in self.loops])
        return self.loop_indexed(loops, self.nest.epilogue_at, space, dtypes.size(self.nest.anchor.dtype), write=True)

    def anchor_in_registers(self) -> Flags:
        """(n,) whether the anchor's statement accumulates at constant indices."""
        nest = self.nest
        lanes = np.ones(self.n, dtype=bool)
        for position, loop in enumerate(nest.loops):
            if not loop.reduce and loop.band == nest.last_space:
                lanes &= nest.expanded(position)
        constant = np.where(nest.in_lanes, lanes, nest.promoted | nest.tile_is_constant)
        return constant & isinstance(nest.anchor.body, Reduce)

    def epilogue(self) -> StatementFacts:
        """The epilogue runs in the anchor's outer loops and in the space loops of its tile."""
        nest, epilogue = self.nest, self.nest.epilogue
        assert epilogue is not None
        outside = self.bands[:, None] < nest.epilogue_at
        space = np.array([not loop.reduce for loop in self.loops]).reshape(-1, 1)
        trips = np.where(outside | space, self.trips, 1.0)
        own = dict(zip(epilogue.axes, nest.anchor.axes, strict=True))
        sizes = {axis: self.sizes[leader] for axis, leader in own.items()}
        back = {leader: axis for axis, leader in own.items()}
        factor = frozenset((epilogue.axes[0],)) if nest.factor is not None else frozenset()
        axes = tuple(
            frozenset((back[loop.axis],)) if loop.axis in back else factor if loop.axis is nest.factor else frozenset()
            for loop in self.loops
        )
        real = trips > 1
        vector = self.vector() & real
        lanes = np.where(vector[-1], nest.lanes, 1) if len(vector) else nest.lanes
        loops = _Loops(trips, self.parallel, self.unrolled & real, vector, np.zeros_like(real), axes, sizes, lanes)
        return self.statement(epilogue, loops, np.zeros(self.n, dtype=bool), tile=nest.anchor)

    # Region stages and packed copies ----------------------------------------------------------------------------------

    def attached(self, stage: Attached) -> StatementFacts:
        """A region stage runs in the loops before its place, then in loops over its box."""
        tensor = stage.tensor
        outside = self.bands[:, None] < stage.at
        path = np.where(outside, self.trips, 1.0)
        own = self.region_loops(stage)
        n_path, n_own = len(path), len(own)
        trips = np.concatenate([path, np.array([trip for _, trip, _, _ in own]).reshape(-1, self.n)])
        reduce = np.zeros((n_path + n_own, self.n), dtype=bool)
        vector = np.zeros_like(reduce)
        parallel = np.zeros_like(reduce)
        parallel[:n_path] = self.parallel & outside
        axes = [frozenset(a for a in tensor.axes if self.touches(stage, a, loop.axis)) for loop in self.loops]
        space_seen = 0
        for position, (axis, _, is_vector, _) in enumerate(own):
            axes.append(frozenset((axis,)))
            reduce[n_path + position] = axis.reduce
            vector[n_path + position] = is_vector & (stage.lanes > 1)
            if not axis.reduce and not is_vector:
                parallel[n_path + position] = space_seen < stage.parallel
                space_seen += 1
        sizes = {axis: self.region_sizes(stage, axis, own, outside) for axis in axes_of(tensor)}
        unrolled = np.zeros_like(reduce)
        written_out = branch_axes(tensor)
        for position, (axis, trip, _, _) in enumerate(own, start=n_path):
            unrolled[position] = (axis in written_out) & (trip > 1) & ~vector[position] & ~parallel[position]
        loops = _Loops(trips, parallel, unrolled, vector, reduce, tuple(axes), sizes, stage.lanes)
        return self.statement(tensor, loops, np.full(self.n, isinstance(tensor.body, Reduce)))

    def region_loops(self, stage: Attached) -> list[tuple[Axis, Column, bool, Column]]:
        """(axis, trip, whether it is the vector, step) of the loops over a box, as ``schedule/lower_region.py`` nests them."""
        tensor, lane, one = stage.tensor, stage.lane_axis, np.ones(self.n, dtype=np.int64)
        reduction = isinstance(tensor.body, Reduce)
        loops: list[tuple[Axis, Column, bool, Column]] = []
        number = positions(tensor)
        loops += [(axis, stage.lengths[number[axis]], False, one) for axis in region_loops(tensor, lane)]
        if lane is not None and not lane.reduce:
            length = stage.lengths[positions(tensor)[lane]]
            if not reduction:
                return [*loops, (lane, length, True, one)]
            strips = np.where(stage.lanes > 1, -(-length // stage.lanes), length)
            loops.append((lane, strips, False, np.where(stage.lanes > 1, stage.lanes, 1)))
        for axis in tensor.reduce_axes:
            if axis is not lane:
                loops.append((axis, one * self.parts.get(axis, axis.extent), False, one))
        if lane is not None and lane.reduce:
            extent = one * self.parts.get(lane, lane.extent)
            loops.append((lane, -(-extent // stage.lanes), False, stage.lanes))
        if lane is not None and (lane.reduce or reduction):
            loops.append((lane, np.where(stage.lanes > 1, stage.lanes, 1), True, one))
        return loops

    def touches(self, stage: Attached, axis: Axis, outer: Axis) -> bool:
        """Whether the corner of the stage's box moves along ``axis`` with a loop over the anchor's ``outer``."""
        box = stage.region[positions(stage.tensor)[axis]]
        return box is not None and any(term is outer for term, _ in box.terms)

    def region_sizes(self, stage: Attached, axis: Axis, own: list[tuple[Axis, Column, bool, Column]], outside: Flags) -> Numbers:
        """How much of an axis of the stage is walked below each depth: boxes of the anchor's tiles first, then its own loops."""
        n_path = len(self.trips)
        result = np.empty((n_path + len(own) + 1, self.n))
        if not axis.reduce:
            d = positions(stage.tensor)[axis]
            box, extent, length = stage.region[d], stage.tensor.shape[d], stage.lengths[d]
            if box is None:
                result[: n_path + 1] = extent
            else:
                walked = np.full((n_path + 1, self.n), 1.0 + box.extra)
                for outer, coefficient in box.terms:
                    walked += abs(coefficient) * (self.sizes[outer] - 1)
                result[: n_path + 1] = np.minimum(walked, extent)
            # Below the place the box is fixed, and so it is at the root, where all of the stage is computed.
            inside = np.concatenate([np.ones((1, self.n), dtype=bool) & (stage.at == 0), ~outside])
            result[: n_path + 1] = np.where(inside, length, result[: n_path + 1])
        else:
            result[: n_path + 1] = self.parts.get(axis, axis.extent)
        for position, (walked_axis, _, _, step) in enumerate(own):
            before = result[n_path + position]
            result[n_path + position + 1] = np.minimum(step, before) if walked_axis is axis else before
        return result

    def packed(self, pack: Packed) -> StatementFacts:
        """A packed copy runs in the loops before its place, then in the loops below that its operand depends on."""
        nest = self.nest
        outside = self.bands[:, None] < pack.at
        dims = frozenset(pack.copy.axes)
        uses = np.array([[loop.axis in dims] for loop in self.loops])
        trips = np.where(outside | uses, self.trips, 1.0)
        real = trips > 1
        inside = ~outside
        vector = self.vector() & real
        lanes = np.where(vector[-1], nest.lanes, 1) if len(vector) else nest.lanes
        parallel = self.packed_parallel(pack, real)
        axes = tuple(frozenset((loop.axis,)) & dims for loop in self.loops)
        unrolled = self.unrolled & real & inside & ~parallel
        loops = _Loops(trips, parallel, unrolled, vector, np.zeros_like(real), axes, self.sizes, lanes)
        element = _distinct(pack.copy)
        assert element.body is not None
        found = [self.read_facts(access, loops) for access in accesses(element)]
        found.append(self.loop_indexed(loops, pack.at, uses[:, 0], dtypes.size(pack.tensor.dtype), write=True))
        counts = operations(element.body, lambda node: isinstance(node, Read))
        return self.facts(pack.copy.name, loops, np.zeros(self.n, dtype=bool), False, counts, tuple(found))

    def packed_parallel(self, pack: Packed, real: Flags) -> Flags:
        """A copy inside the parallel loops is one of their iterations; one at the root is parallel in its first loop."""
        outside = self.bands[:, None] < pack.at
        first = np.cumsum(real, axis=0) == 1
        at_root = (pack.at == 0) & (self.nest.parallel > 0) & (real.sum(axis=0) > 1)
        return np.asarray(np.where(pack.at == 0, first & real & at_root, self.parallel & outside))

    # Accesses ---------------------------------------------------------------------------------------------------------

    def statement(
        self,
        tensor: Tensor,
        loops: _Loops,
        in_registers: Flags,
        home: AccessFacts | None = None,
        packs: Mapping[Tensor, Packed] | None = None,
        tile: Tensor | None = None,
    ) -> StatementFacts:
        found: list[AccessFacts] = []
        distinct = _distinct(tensor)
        for access in accesses(distinct):
            if packs and access.tensor in packs:
                pack = packs[access.tensor]
                uses = np.array([loop.axis in frozenset(pack.copy.axes) for loop in self.loops])
                found.append(self.loop_indexed(loops, pack.at, uses, dtypes.size(pack.tensor.dtype), write=False))
            elif access.tensor is tile:
                uses = np.array([not loop.reduce for loop in self.loops])
                found.append(self.loop_indexed(loops, self.nest.epilogue_at, uses, dtypes.size(tensor.dtype), write=False))
            else:
                found.append(self.read_facts(access, loops))
        accumulates = isinstance(tensor.body, Reduce)
        found.append(home or self.write_facts(tensor, loops))
        assert distinct.body is not None
        counts = operations(distinct.body, lambda node: isinstance(node, Read))
        return self.facts(tensor.name, loops, in_registers, accumulates, counts, tuple(found))

    def facts(
        self, name: str, loops: _Loops, in_registers: Flags, accumulates: bool, counts: Operations, found: tuple[AccessFacts, ...]
    ) -> StatementFacts:
        lanes = loops.lanes.astype(np.float64)
        kinds = (loops.trips, loops.parallel, loops.unrolled, loops.vector, loops.reduce)
        return StatementFacts(name, *kinds, lanes, in_registers, accumulates, counts, found)

    def extents(self, tensor: Tensor) -> tuple[Numbers, ...]:
        """The extents of the buffer that holds what a statement reads or writes of ``tensor``."""
        if tensor in self.lengths:
            return tuple(length.astype(np.float64) for length in self.lengths[tensor])
        shape = [self.parts.get(a, a.extent) for a in tensor.axes] if tensor.axes else tensor.shape
        return tuple(np.full(self.n, 1.0) * extent for extent in shape)

    def sizes_in_box(self, tensor: Tensor, dim: int, form: Affine, loops: _Loops) -> Mapping[Axis, Numbers]:
        """``loops.sizes`` for a read of ``tensor``: a box that moves along with outer loops is read from its own corner."""
        stage = next((stage for stage in self.nest.attached if stage.tensor is tensor), None)
        box = None if stage is None else stage.region[dim]
        if stage is None or box is None or not box.terms or _sticks_out(box, tensor.shape[dim]):
            return loops.sizes
        moves = (stage.at > 0) & (stage.lengths[dim] < tensor.shape[dim])
        depth = np.where(moves, np.count_nonzero(self.bands[:, None] < stage.at, axis=0), 0)[None, :]

        def at_the_place(sizes: Numbers) -> Numbers:
            return np.where(np.arange(len(sizes))[:, None] < depth, np.take_along_axis(sizes, depth, axis=0), sizes)

        plain = (term for term in form.coefficients if isinstance(term, Axis))
        return {**loops.sizes, **{axis: at_the_place(loops.sizes[axis]) for axis in plain}}

    def read_facts(self, access: Access, loops: _Loops, by_axes: tuple[Axis, ...] | None = None) -> AccessFacts:
        extents = self.extents(access.tensor)
        lane = self.lane_of(loops)
        forms = access.dims if by_axes is None else tuple(Affine(((axis, 1),), 0) for axis in by_axes)
        widths, moving = [], False
        apart = np.zeros(self.n)
        moves = np.zeros(loops.trips.shape, dtype=bool)
        for position, (form, extent) in enumerate(zip(forms, extents, strict=True)):
            if form is None:
                widths.append(np.broadcast_to(extent, (len(loops.trips) + 1, self.n)))
                moving |= lane in access.axes
                moves |= np.array([[bool(walked & access.axes)] for walked in loops.axes], dtype=bool).reshape(-1, 1)
                continue
            widths.append(_width(form, self.sizes_in_box(access.tensor, position, form, loops), extent))
            moves |= _moves(form, loops)
            if lane is not None and lane in form.variables:
                moving = True
                scale = np.prod(np.array(extents[position + 1 :]).reshape(-1, self.n), axis=0)
                apart += scale * (_at(form, lane) - _at(form, None))
        # Between the first two lanes.
        stride = np.where((loops.lanes > 1) & moving, np.where(apart == 1, 1.0, 2.0), 0.0)
        return AccessFacts(tuple(widths), extents, dtypes.size(access.tensor.dtype), moves & (loops.trips > 1), stride, False)

    def write_facts(self, tensor: Tensor, loops: _Loops) -> AccessFacts:
        facts = self.read_facts(Access(tensor, (), frozenset(tensor.axes)), loops, by_axes=tensor.axes)
        return replace(facts, write=True)

    def lane_of(self, loops: _Loops) -> Axis | None:
        """The axis along which lanes lie, if there are lanes."""
        last = loops.axes[-1] if loops.axes else frozenset()
        return next(iter(last), None)

    def loop_indexed(self, loops: _Loops, at: Column, uses: NDArray[np.bool_], item: int, write: bool) -> AccessFacts:
        """A buffer whose dimensions are the loops ``uses`` below place ``at``: contiguous in the order of use."""
        inside = uses[:, None] & (self.bands[:, None] >= at)
        counted = np.where(inside, self.trips, 1.0)
        below = np.ones((len(counted) + 1, self.n))
        for depth in reversed(range(len(counted))):
            np.multiply(below[depth + 1], counted[depth], out=below[depth])
        moves = inside & (loops.trips > 1)
        stride = np.where((loops.lanes > 1) & inside[-1], 1.0, 0.0) if len(inside) else np.zeros(self.n)
        return AccessFacts((below,), (below[0],), item, moves, stride, write)


@lru_cache(maxsize=4096)
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


def _width(form: Affine, sizes: Mapping[Axis, Numbers], extent: Numbers) -> Numbers:
    """How many values a form takes below each depth, at most ``extent``."""
    if isinstance(form.plain, Axis):
        return np.minimum(sizes[form.plain], extent)
    low, high = _range(form, sizes)
    high = np.asarray(high - low)
    high += 1
    return np.minimum(high, extent)


def _sticks_out(box: Box, extent: int) -> bool:
    """Whether some box of these is shifted inwards at an edge, where its own corner is not what its form says."""
    low = box.constant + sum(min(c, 0) * (axis.extent - 1) for axis, c in box.terms)
    high = box.constant + box.extra + sum(max(c, 0) * (axis.extent - 1) for axis, c in box.terms)
    return low < 0 or high >= extent


def _range(form: Affine, sizes: Mapping[Axis, Numbers]) -> tuple[Numbers, Numbers]:
    """The least and greatest value of a form below each depth, with everything further out at its start."""
    low = high = np.asarray(float(form.constant))
    for term, coefficient in form.terms:
        match term:
            case Quotient(inner, divisor):
                least, most = (np.floor(bound / divisor) for bound in _range(inner, sizes))
            case Remainder(inner, divisor):
                from_, to = _range(inner, sizes)
                wraps = np.floor(from_ / divisor) != np.floor(to / divisor)
                least, most = np.where(wraps, 0.0, from_ % divisor), np.where(wraps, divisor - 1.0, to % divisor)
            case _:
                assert isinstance(term, Axis)
                least, most = np.zeros(()), sizes[term] - 1
        a, b = (least, most) if coefficient > 0 else (most, least)
        low = low + (a if coefficient == 1 else coefficient * a)
        high = high + (b if coefficient == 1 else coefficient * b)
    return low, high


def _at(form: Affine, one: Axis | None) -> int:
    """The form's value where every axis is 0 except ``one``, which is 1."""
    total = form.constant
    for term, coefficient in form.terms:
        match term:
            case Quotient(inner, divisor):
                total += coefficient * (_at(inner, one) // divisor)
            case Remainder(inner, divisor):
                total += coefficient * (_at(inner, one) % divisor)
            case _:
                total += coefficient * (term is one)
    return total


def _moves(form: Affine, loops: _Loops) -> Flags:
    """(D, n) whether the form changes over the iterations of each loop, every other loop at its start."""
    result = np.zeros(loops.trips.shape, dtype=bool)
    for depth, walked in enumerate(loops.axes):
        for axis in walked & form.variables:
            assert isinstance(axis, Axis)
            if axis in form.coefficients:
                result[depth] = True
            else:
                step = loops.sizes[axis][depth + 1]
                reach = {a: np.ones(loops.trips.shape[1]) for a in loops.sizes} | {axis: 1 + (loops.trips[depth] - 1) * step}
                low, high = _range(form, reach)
                result[depth] |= low != high
    return result
