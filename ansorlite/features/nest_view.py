"""The loops of a nest as its statements see them, and what a statement reads and writes there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from ansorlite.analysis.access import Access, accesses, axes_of
from ansorlite.columns.arithmetic import (
    both,
    either,
    equal,
    largest,
    maximum,
    minimum,
    negated,
    select,
    total,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.features.fused import joined
from ansorlite.features.loops_around import Around, Loops, Steps, changes, first_step, how_wide, is_unaligned, loop_around
from ansorlite.features.neighbours import Location, location_of, with_neighbours
from ansorlite.features.no_ops import LeftOut, OuterLoop, left_out
from ansorlite.features.operations import operations
from ansorlite.loops.nodes import index
from ansorlite.once import once_for_each
from ansorlite.schedule.nest import Attached, Nest, Packed, Program
from ansorlite.schedule.padding import strides
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Reduce
from ansorlite.te.index.form import Affine
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.index.strides import step
from ansorlite.te.ops import BinaryOp
from ansorlite.te.rewriting import with_body
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import reads

_NONE: Final[Mapping[str, Number]] = {}


class NestView:
    """A nest in columns: its real loops, with those around it, and the accesses of statements in them."""

    def __init__(
        self, nest: Nest, program: Program, around: Around | None = None, matrix_dots: frozenset[BinaryOp] = frozenset()
    ) -> None:
        self.nest = nest
        self.matrix_dots = matrix_dots
        self.program = program
        self.parts = program.parts
        self.pads = program.pads
        self.around = around
        # A loop that is of one iteration in every program changes nothing but the time that this takes.
        own = [loop for loop in nest.loops if largest(loop.trip) > 1]
        # Those around the nest stand before all of its bands, and walk none of its axes.
        before = [] if around is None else [loop_around(trip) for trip in around.trips]
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

    def axis_sizes(self, axis: Axis) -> Numbers:
        """By depth how much of an anchor's axis the loops below walk."""
        if axis in self.parts and not axis.reduce and self.nest.factor is not None:
            return [self.parts[axis], *[1 for _ in self.loops]]
        result = [self.extent(axis)] if self.around is None else list(self.around.sizes[axis])
        for loop in self.loops[len(result) - 1 :]:
            result.append(self.nest.left(self.nest.loops.index(loop)) if loop.axis is axis else result[-1])
        return result

    @cached_property
    def constants(self) -> frozenset[Tensor]:
        """Stages that are computed once, before the first call."""
        nests = [nest for root in self.program.nests for nest in root.all]
        whole = {tensor for nest in nests if nest.prepared for tensor in (nest.anchor, nest.epilogue) if tensor is not None}
        return frozenset(whole | {stage.tensor for nest in nests for stage in nest.attached if stage.prepared})

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

    @cached_property
    def left_out(self) -> LeftOut:
        """What the loops leave out."""
        if self.around is None:
            return left_out(self.nest)
        of = self.around
        return left_out(self.nest, [OuterLoop(*loop) for loop in zip(of.walks, of.trips, of.unrolled, strict=True)])

    def straight(self, around: Numbers) -> list[Number]:
        """By loop: whether code around what is in the loops that ``around`` tells writes it out: no ends inside are computed."""
        result: list[Number] = []
        computed: Number = 0
        for loop, unrolled, here in zip(reversed(self.loops), reversed(self.unrolled), reversed(around), strict=True):
            computed = either(computed, both(here, self.left_out.computed.get(loop, 0)))
            result.append(both(unrolled, negated(computed)))
        return result[::-1]

    def extent(self, axis: Axis) -> Number:
        return self.parts.get(axis, axis.extent)

    def outside(self, at: Number) -> Numbers:
        """By loop of the nest: whether it is around place ``at``."""
        if at not in self.flags:
            self.flags[at] = [band < at for band in self.bands]
        return self.flags[at]

    def space(self) -> list[bool]:
        return [not loop.reduce for loop in self.loops]

    def statement(
        self,
        tensor: Tensor,
        loops: Loops,
        in_registers: Number,
        home: AccessFacts | None = None,
        packs: Mapping[Tensor, Packed] | None = None,
        tile: Tensor | None = None,
        streamed: Number = 0,
    ) -> StatementFacts:
        found: list[AccessFacts] = []
        locations: list[Location | None] = []
        read: dict[Hashable, AccessFacts] = {}
        whole = distinct(tensor)
        for access in accesses(whole):
            moved = access.tensor is tile or (packs is not None and access.tensor in packs)
            locations.append(None if moved else location_of(access))
            if packs and access.tensor in packs:
                pack = packs[access.tensor]
                uses = [loop.axis in pack.copy.axes for loop in self.loops]
                item = dtypes.size(pack.tensor.dtype)
                packed = self.loop_indexed(loops, pack.at, uses, item, write=False, pads=pack.pads)
                found.append(replace(packed, producer=pack.copy.name, constant=pack.prepared))
            elif access.tensor is tile:
                item = dtypes.size(access.tensor.dtype)
                taken = self.loop_indexed(loops, self.nest.epilogue_at, self.space(), item, write=False)
                found.append(replace(taken, held=self.nest.tile_is_constant, producer=access.tensor.name))
            else:
                walk = _walk(access)
                if walk not in read:
                    read[walk] = self.read_facts(access, loops)
                found.append(read[walk])
        all_ = (*with_neighbours(found, locations), home or self.write_facts(tensor, loops))
        return facts_of(tensor.name, whole, loops, in_registers, isinstance(tensor.body, Reduce), all_, streamed)

    def extents(self, tensor: Tensor) -> tuple[Number, ...]:
        """The extents of the buffer that holds what a statement reads or writes of ``tensor``."""
        if tensor in self.places:
            return self.places[tensor][0].lengths
        return tuple(self.extent(axis) for axis in tensor.axes) if tensor.axes else tensor.shape

    def sizes_in_box(self, tensor: Tensor, dim: int, form: Affine, loops: Loops) -> tuple[Mapping[Axis, Numbers], Numbers]:
        """``loops.sizes`` for a read of ``tensor``: a box that moves along with outer loops is read from its own corner.

        Also, by depth, how far the last boxes of these loops are shifted inwards: they are read as far from their corners.
        """
        depths = len(loops.trips) + 1
        found = self.moving_box(tensor, dim)
        plain = [term for term in form.coefficients if isinstance(term, Axis)]
        if found is None or (found.shifted and len(plain) < len(form.coefficients)):
            return loops.sizes, [0] * depths
        place = where(found.moves, total(self.renewed(self.places[tensor][1], loops)), 0)
        before = [depth < place for depth in range(depths)]

        def at_the_place(sizes: Numbers) -> Numbers:
            there = select(sizes, place)
            return [where(flag, there, size) for flag, size in zip(before, sizes, strict=True)]

        there = {axis: at_the_place(loops.sizes[axis]) for axis in plain}
        beyond: Numbers = [0] * depths
        if found.shifted:
            last = found.stage.region[dim]
            assert last is not None
            for depth, flag in enumerate(before):
                corner: Number = last.constant
                for axis in plain:
                    corner = corner + form.coefficients[axis] * (loops.sizes[axis][depth] - there[axis][depth])
                shift = maximum(corner + found.stage.lengths[dim] - tensor.shape[dim], 0)
                beyond = [*beyond[:depth], where(flag, shift, 0), *beyond[depth + 1 :]]
        return {**loops.sizes, **there}, beyond

    def moving_box(self, tensor: Tensor, dim: int) -> _MovingBox | None:
        """The stage whose box ``tensor`` is; ``None`` if it never moves along with outer loops, or may begin before the first
        element."""
        stage = self.places[tensor][0] if tensor in self.places else None
        box = None if stage is None else stage.region[dim]
        if stage is None or box is None or not box.terms:
            return None
        low, high = box.reach
        if low < 0:
            return None
        moves = both(either(stage.at > 0, self.around is not None), stage.lengths[dim] < tensor.shape[dim])
        return _MovingBox(stage, moves, high >= tensor.shape[dim])

    def read_facts(
        self, access: Access, loops: Loops, by_axes: tuple[Axis, ...] | None = None, lane: Axis | None = None
    ) -> AccessFacts:
        """``lane``: the axis of the lanes, if that is not the one of the last loop."""
        extents = self.extents(access.tensor)
        if lane is None and loops.axes:
            lane = next(iter(loops.axes[-1]), None)
        forms = access.dims if by_axes is None else tuple(Affine(((axis, 1),), 0) for axis in by_axes)
        widths: list[Numbers] = []
        lane_moves, known = False, True
        pads = self.pads.get(access.tensor, ())
        between = strides(extents, pads)
        apart: Number = 0  # elements between the first two lanes
        moved: Numbers = [0] * len(loops.trips)
        second: Numbers = moved  # by loop: elements from its first iteration to its second
        for position, (form, extent) in enumerate(zip(forms, extents, strict=True)):
            if form is None:
                widths.append([extent] * (len(loops.trips) + 1))
                lane_moves |= lane in access.axes
                known &= lane not in access.axes
                here: Numbers = [bool(walked & access.axes) for walked in loops.axes]
            else:
                sizes, beyond = self.sizes_in_box(access.tensor, position, form, loops)
                inside = how_wide(form, sizes, len(loops.trips) + 1, extent)
                widths.append([minimum(width + more, extent) for width, more in zip(inside, beyond, strict=True)])
                here = [
                    changes(form, walked & form.variables, loops, depth) if not walked.isdisjoint(form.variables) else 0
                    for depth, walked in enumerate(loops.axes)
                ]
                box = self.moving_box(access.tensor, position)
                if box is not None and not box.shifted:
                    # Seen from the corner of the box, nothing moves with the loops that move it.
                    fixed = [both(box.moves, flag) for flag in self.renewed(self.places[access.tensor][1], loops)]
                    here = [both(flag, negated(still)) for flag, still in zip(here, fixed, strict=True)]
                if by_axes is None:
                    far = (first_step(form, walked, loops, depth) for depth, walked in enumerate(loops.axes))
                    apart_here = (where(flag, by, 0) * between[position] for flag, by in zip(here, far, strict=True))
                    second = [a + b for a, b in zip(second, apart_here, strict=True)]
                if lane is not None and lane in form.variables:
                    lane_moves = True
                    apart = apart + between[position] * step(form, lane)
            moved = [either(a, b) for a, b in zip(moved, here, strict=True)]
        stride = where(both(loops.lanes > 1, lane_moves), where(equal(apart, 1), 1, 2), 0)
        moved = [both(flag, trip > 1) for flag, trip in zip(moved, loops.trips, strict=True)]
        renewed = self.renewed(self.places[access.tensor][1] if access.tensor in self.places else (), loops)
        item = dtypes.size(access.tensor.dtype)
        producer = "" if access.tensor.body is None else access.tensor.name
        lane_step = where(equal(stride, 2), apart, 0) if known else 0
        facts = AccessFacts(tuple(widths), extents, item, moved, stride, False, renewed, pads)
        unaligned = is_unaligned(second, item, loops, moved, renewed)
        constant = access.tensor.constant or access.tensor in self.constants
        return replace(facts, lane_step=lane_step, producer=producer, constant=constant, unaligned=unaligned)

    def renewed(self, outside: Numbers, loops: Loops) -> Numbers:
        """By loop: whether each iteration has a buffer of its own; ``outside``: which loops of the nest are around that."""
        numbers = loops.numbers if outside else ()
        return [*(outside[number] for number in numbers), *[0] * (len(loops.trips) - len(numbers))]

    def write_facts(self, tensor: Tensor, loops: Loops) -> AccessFacts:
        facts = self.read_facts(Access(tensor, (), frozenset(tensor.axes)), loops, by_axes=tensor.axes)
        return replace(facts, write=True)

    def loop_indexed(
        self, loops: Loops, at: Number, uses: Sequence[bool], item: int, write: bool, pads: Mapping[str, Number] = _NONE
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
            unaligned = is_unaligned(below[1:], item, loops, moved, renewed)
            return AccessFacts((below,), (below[0],), item, moved, stride, write, renewed, unaligned=unaligned)
        # A dimension for each loop: those that are not there are of one element.
        extents = [where(here, trip, 1) for here, trip in zip(inside, self.trips, strict=True)]
        widths = tuple([where(depth <= dim, extent, 1) for depth in range(len(below))] for dim, extent in enumerate(extents))
        behind = [0, *(pads.get(loop.name, 0) for loop in self.loops)][: len(extents)]
        unaligned = is_unaligned(strides(extents, behind), item, loops, moved, renewed)
        return AccessFacts(widths, tuple(extents), item, moved, stride, write, renewed, tuple(behind), unaligned=unaligned)


@dataclass(frozen=True)
class _MovingBox:
    """A box of a stage, which moves along with loops around its place.

    Attributes:
        moves: flag: whether it does in this program.
        shifted: whether the last boxes may be shifted inwards, where their own corner is not what their form says.
    """

    stage: Attached
    moves: Number
    shifted: bool


def facts_of(
    name: str,
    distinct: Tensor,
    loops: Loops,
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
def distinct(tensor: Tensor) -> Tensor:
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
