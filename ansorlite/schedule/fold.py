"""The fold: the structure of a schedule and what is chosen for its holes give loop nests.

This is the one place that says what loops and places mean in numbers. It is written for one program. With what one row chooses,
``fold(structure, chosen(row))``, it gives the program that is lowered to loop IR; with a column for each choice,
``fold(structure, gathered(tape))``, it is the recipe that turns whole populations into loop extents, keys and features.

Rows always decode: a choice that another choice rules out is projected onto the nearest that is legal (a producer is
never computed further in than its consumers, an epilogue never before the reduction has ended, ...). Numbers come out
in normal form, so that rows that mean the same program give the same ones (see ``canonical.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.analysis.access import axes_of, positions, walked
from ansorlite.analysis.branches import region_loops
from ansorlite.analysis.constants import constant_stages
from ansorlite.columns.arithmetic import (
    both,
    equal,
    every,
    floor,
    low_bit,
    maximum,
    minimum,
    modulo,
    select,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import Scope
from ansorlite.loops.swizzle import CHUNK
from ansorlite.schedule.accumulators import check_starts, in_scope
from ansorlite.schedule.bands import Depths, bands_around, bands_of, kept
from ansorlite.schedule.conditions import Conditions
from ansorlite.schedule.copied import fetched, packed
from ansorlite.schedule.fusing import unfused
from ansorlite.schedule.kinds import check_kinds, check_sums, fused_in, shared_loops, streamed, unrolled
from ansorlite.schedule.nest import Attached, Loop, Nest, Program
from ansorlite.schedule.padding import paddings, wanted
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.regions import Region, regions
from ansorlite.schedule.rings import ring
from ansorlite.schedule.samples import Choose, Value, evaluate
from ansorlite.schedule.structure import (
    Location,
    Sampled,
    StageLoops,
    Structure,
    places,
)
from ansorlite.schedule.threads import check_kept, check_own, check_shared
from ansorlite.schedule.unit import multiplied
from ansorlite.schedule.walks import Walks, chain, innermost, mixed_axes
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Reduce
from ansorlite.te.tensor import Tensor

_NONE: Final[Mapping[str, LoopRef]] = {}


def fold(structure: Structure, choose: Choose) -> Program:
    """The program that ``choose`` makes of a finished structure.

    Raises:
        ScheduleError: no choice makes a program of it; the message names stage, loop and cure.
    """
    return _Fold(structure, choose).program()


class _Fold:
    def __init__(self, structure: Structure, choose: Choose) -> None:
        structure = unfused(structure)
        self.dag = structure.dag
        self.structure = structure
        self.choose = choose
        self.tensors = structure.tensors
        # What threads share is computed in every one of their blocks, whatever it follows from.
        self.constant = frozenset(t for t in constant_stages(self.dag) if not structure.loops(t.name).shared)
        self.parts: dict[Axis, Number] = {}
        self.conditions = Conditions()
        self.walks = Walks(choose, self.parts, self.conditions)
        self.follower: dict[str, str] = {}
        self.members: dict[str, list[Tensor]] = {}
        self.pads: dict[Tensor, tuple[Number, ...]] = {}
        self.swizzles: dict[Tensor, Number] = {}

    def program(self) -> Program:
        position = {tensor.name: i for i, tensor in enumerate(self.dag.tensors)}
        said = {t.name: self.structure.loops(t.name) for t in self.dag.computes}
        # A nest ends with its epilogue, which may read what other nests compute.
        home = {name: self.home(name) for name in said}
        self.follower = {home[name] or "": name for name, of in said.items() if of.follows}
        for name, of in said.items():
            if of.boxed:
                self.members.setdefault(home[name] or "", []).append(self.tensors[name])
        inside = {copy.tensor for of in said.values() for copy in of.copies if copy.computed}
        anchors = [name for name in said if home[name] is None and name not in inside]
        anchors.sort(key=lambda anchor: position[self.follower.get(anchor) or anchor])
        # Producers first: partial results are counted before the nest that folds them is shaped.
        nests = []
        for each in anchors:
            anchor = self.tensors[each]
            nest = self.nest(anchor, said[each], {axis: axis.extent for axis in axes_of(anchor)})
            nests.append(nest)
            if nest.factor is not None and nest.epilogue is not None:
                merge = next(c for c in self.dag.consumers(nest.epilogue))
                counting = (nest.anchor.axes[0], nest.epilogue.axes[0], merge.reduce_axes[0])
                self.parts |= dict.fromkeys(counting, nest.loops[0].trip)
        return Program(self.dag, tuple(nests), self.parts, self.conditions.valid, self.pads, self.swizzles)

    def value(self, value: Value) -> Number:
        return evaluate(value, self.choose)

    def home(self, name: str) -> str | None:
        """The stage in whose nest a stage is computed. What is prepared has no loops around it: it stands before root loops."""
        around = self.structure.around(name)[1:]
        if not around:
            return None
        return around[-1] if self.tensors[name] in self.constant else around[0]

    def inside(self, anchor: Tensor) -> dict[Tensor, Tensor]:
        """All stages computed in a nest or in nests inside of it, each with the one of the nest itself that it is for."""
        found: dict[Tensor, Tensor] = {}
        for member in self.members.get(anchor.name, []):
            found |= dict.fromkeys((member, *self.inside(member)), member)
        return found

    def nest(self, anchor: Tensor, said: StageLoops, extents: Mapping[Axis, Number], box: Number | None = None) -> Nest:
        """
        Args:
            extents: of the axes that the loops walk.
            box: the place of an attached stage, after so many bands of another nest; ``None`` of a root nest.
        """
        follower = self.follower.get(anchor.name)
        epilogue = self.tensors[follower] if follower is not None else None
        factor = self.factor(anchor, epilogue)
        members = self.members.get(anchor.name, [])
        # Partial results are counted by what is known only now.
        known = {axis: self.parts.get(axis, extent) for axis, extent in extents.items()}
        walks = self.walks.of(anchor, said, factor, epilogue is not None, known)
        names = kept(said, walks)
        vector = said.vector[0] if said.vector is not None and said.vector[0] in names else None
        if vector is not None and names[-1] != vector:
            raise ScheduleError(
                f"loop {vector} of stage {anchor.name} is vectorized, but {names[-1]} is the innermost one; "
                f"reorder {vector} to the end"
            )
        if vector is not None and vector not in innermost(said):
            raise ScheduleError(
                f"loop {vector} of stage {anchor.name} is vectorized, but its iterations are several elements apart: "
                f"vectorize the innermost of the loops that the axis was split into"
            )
        own = (member for member in members if self.structure.anchor(member.name) == anchor.name)
        inside = [self.structure.loops(member.name).at for member in own] + [copy.at for copy in said.copies]
        inside += [self.structure.loops(follower).at] if follower is not None else []
        starts = said.starts
        if starts is not None:
            check_starts(anchor, said, walks, starts.at)
            inside.append(starts.at)
        if vector is not None and LoopRef(anchor.name, vector) in {place for at in inside for place in places(at)}:
            raise ScheduleError(
                f"something is computed inside of loop {vector} of stage {anchor.name}, which is vectorized; "
                f"compute it further out"
            )
        depths = Depths(said, names, inside)
        grouped = bands_of(names, walks, depths.all, vector, isinstance(anchor.body, Reduce))
        depth = {name: number for number, name in enumerate(chain(said))}
        bound, fused = dict(said.bound), fused_in(anchor.name, said, names)
        loops = tuple(
            Loop(name, walk.axis, depth[name], number, *walk.numbers, 0, bound.get(name), fused.get(name), walk.guard)
            for number, (_, band) in enumerate(grouped)
            for name, walk in ((name, walks[name]) for name in band)
        )
        cut = frozenset(name for name in names if walks[name].cut)
        bands = tuple(reduces for reduces, _ in grouped)
        # Blocks and threads are such even where there is only one.
        unit = [
            every(equal(loop.trip, 1) if loop.bound is None else 0 for loop in loops if loop.band == band)
            for band in range(len(bands))
        ]
        normal: list[Number] = [0]
        ended: Number = len(bands)
        for band in range(len(bands)):
            normal.append(where(unit[band], normal[-1], band + 1))
        for band in reversed(range(len(bands))):
            if bands[band]:
                ended = where(unit[band], ended, band)

        def place(at: Location) -> Number:
            """The number of bands around a place, before it is projected."""
            found = [0 if loop is None else bands_around(depths.of(loop.name), grouped) for loop in places(at)]
            return self.choose(at.hole, _table(found)) if isinstance(at, Sampled) else found[0]

        def normalised(at: Number) -> Number:
            return select(normal, at)

        epilogue_at: Number = 0
        if follower is not None:
            epilogue_at = normalised(minimum(place(self.structure.loops(follower).at), ended))
        lane_axis: Axis | None = None
        lanes: Number = 1
        if vector is not None and said.vector is not None:
            lane_axis, lanes = walks[vector].axis, minimum(self.value(said.vector[1]), loops[-1].trip)
        mixed = mixed_axes(said, walks)
        parallel = shared_loops(said, [loop.trip for loop in loops], anchor.name, names, self.choose, fused)
        if box is not None:
            parallel = where(equal(box, 0), parallel, 0)
        check_kinds(anchor.name, said, loops, cut, mixed, parallel, self.conditions)
        loops, written = unrolled(loops, said, cut, mixed, lanes, parallel, self.choose)
        stored = anchor if epilogue is None else epilogue
        if box is None:
            self.padded(stored, [self.parts.get(axis, axis.extent) for axis in stored.axes])
        if stored is not anchor and said.aligned:
            raise ScheduleError(
                f"stage {anchor.name} is a tile of accumulators: storage_align is of stages that are stored, and of copies"
            )
        prepared = stored in self.constant
        wish = self.value(self.structure.loops(stored.name).streamed)
        past = streamed(wish, stored, loops, lanes) if box is None else 0
        reduce_at: Number = ended
        if starts is not None:
            # Of a local tile no further out than where that is made; and no further in than where the reduction begins.
            begin = maximum(normalised(minimum(place(starts.at), ended)), epilogue_at)
            reduce_at = where(equal(begin, normalised(ended)), ended, begin)
        numbers = epilogue_at, reduce_at, starts is not None
        nest = Nest(
            anchor,
            extents,
            loops,
            bands,
            factor,
            epilogue,
            *numbers,
            lane_axis,
            lanes,
            parallel,
            prepared,
            said.scope,
            past,
            cut,
            mixed,
            written,
            (),
            (),
        )
        self.conditions.valid = both(self.conditions.valid, in_scope(nest))
        check_kept(nest, box is None, self.conditions)
        check_sums(nest, said, walks, self.conditions)
        attached = self.attached(nest, members, place, normalised, box is None)
        rules = self.choose, self.conditions
        copies = tuple(
            packed(
                self.dag, nest, self.tensors[copy.tensor], copy, attached, lambda at: normalised(place(at)), *rules, box is None
            )
            for copy in said.copies
        )
        asked = tuple(fetched(nest, said, ahead, attached, *rules) for ahead in said.prefetched if ahead.loop in names)
        by_unit = multiplied(anchor, said, loops, epilogue is not None, self.conditions)
        if by_unit is not None:
            inside_of = nest.inner_reduction or 0
            places_inside = [*(stage.at for stage in attached), *(copy.at for copy in copies)]
            nothing = every(at <= inside_of for at in places_inside)
            self.conditions.require(
                both(nothing, epilogue_at <= inside_of),
                f"stage {anchor.name} is multiplied by {by_unit.unit.name}: nothing else is computed inside of its innermost "
                f"loops; compute it further out",
            )
        nest = replace(nest, attached=attached, packed=copies, fetched=asked, multiplied=by_unit)
        if said.pipelined is None or said.pipelined[0] not in names:
            return nest
        here = bands_around(depths.of(said.pipelined[0]), grouped)
        return ring(nest, said, self.structure, self.inside(anchor), here, *rules)

    def factor(self, anchor: Tensor, epilogue: Tensor | None) -> Axis | None:
        """The axis whose outermost loop makes partial results, if the nest does."""
        if epilogue is None:
            if anchor.name in self.structure.partials:
                raise ScheduleError(
                    f"stage {anchor.name} holds the partial results of an rfactor: they are computed in a tile of their own; "
                    f"cache_write it, and let it follow the cache (reverse_compute_at)"
                )
            return None
        name = self.structure.partials.get(epilogue.name)
        return next((axis for axis in anchor.reduce_axes if axis.name == name), None)

    # What is computed inside of a nest -------------------------------------------------------------------------------

    def attached(
        self,
        nest: Nest,
        members: Sequence[Tensor],
        place: Callable[[Location], Number],
        normalised: Callable[[Number], Number],
        root: bool,
    ) -> tuple[Attached, ...]:
        """The stages computed in ``nest``, producers first; none further in than one of its consumers."""
        inside = self.inside(nest.anchor)
        forms = regions(self.dag, nest.anchor, nest.epilogue, list(inside))
        at_of: dict[Tensor, Number] = {}
        result: list[Attached] = []
        for tensor in reversed(members):
            fixed = tensor in self.constant
            at: Number = 0 if fixed else place(self.structure.loops(tensor.name).at)
            consumers = [inside.get(consumer, consumer) for consumer in self.dag.consumers(tensor)]
            for consumer in consumers:
                if consumer not in at_of and consumer not in (nest.anchor, nest.epilogue):
                    raise ScheduleError(
                        f"stage {tensor.name} is computed in loops of {nest.anchor.name}, but {consumer.name} reads it outside "
                        f"of them; compute {consumer.name} there too, or {tensor.name} at the root"
                    )
                if consumer in at_of:
                    at = minimum(at, at_of[consumer])
                elif consumer is nest.epilogue:
                    at = minimum(at, nest.epilogue_at)
            # What is prepared has no loops around it.
            at = at_of[tensor] = 0 if fixed else normalised(at)
            # The boxes of a stage further in are of full length, whatever is left for the last run of a reduction loop.
            read_inside = any(consumer in at_of for consumer in consumers)
            tiles = nest.reaches if read_inside else nest.sizes
            stage = self.dealt(nest, self.region_stage(tensor, forms[tensor], at, tiles, root))
            if stage.shared:
                by_threads = (stage.dealt if stage.nest is None else stage.nest.threads) > 0
                check_shared(nest, tensor.name, at, root, by_threads, self.conditions)
            elif not fixed:
                check_own(nest, tensor.name, at, root, self.conditions)
            result.append(stage)
        return tuple(reversed(result))

    def region_stage(
        self, tensor: Tensor, region: Region, at: Number, tiles: Sequence[Mapping[Axis, Number]], root: bool
    ) -> Attached:
        """``tiles``: for each number of bands entered, how much of the anchor's axes the region is to hold."""
        said = self.structure.loops(tensor.name)
        if said.scope is Scope.REGISTER or said.scope is Scope.GLOBAL:
            raise ScheduleError(
                f"stage {tensor.name} is to be in {said.scope.name.lower()} memory, but is computed inside of another one's "
                f"loops, into local memory"
            )
        lengths: list[Number] = []
        for extent, box in zip(tensor.shape, region, strict=True):
            per_band = [extent if box is None else box.length(sizes, extent) for sizes in tiles]
            if root:
                # At the root all of it is computed.
                per_band[0] = extent
            lengths.append(select(per_band, at))
        self.padded(tensor, lengths)
        self.swizzled(tensor, lengths)
        if said.is_shaped or tensor.name in self.members:
            extents = {axis: axis.extent for axis in tensor.reduce_axes} | dict(zip(tensor.axes, lengths, strict=True))
            nest = self.nest(tensor, said, extents, at if root else 1)
            shape = nest.lane_axis, nest.lanes, nest.parallel
            return Attached(tensor, region, at, tuple(lengths), *shape, tensor in self.constant, said.shared, nest)
        number, lane_axis = positions(tensor), None
        lanes: Number = 1
        if said.vector is not None:
            lane_axis = next(axis for axis in axes_of(tensor) if axis.name == said.vector[0])
            width = lane_axis.extent if lane_axis.reduce else lengths[number[lane_axis]]
            lanes = minimum(self.value(said.vector[1]), width)
        order = region_loops(tensor, lane_axis)
        trips = [lengths[number[axis]] for axis in order]
        shared = shared_loops(said, trips, tensor.name, [axis.name for axis in order], self.choose)
        parallel = where(equal(at, 0), shared, 0) if root else 0
        shape = lane_axis, lanes, parallel
        return Attached(tensor, region, at, tuple(lengths), *shape, tensor in self.constant, said.shared, None)

    def dealt(self, nest: Nest, stage: Attached) -> Attached:
        """A stage that threads share, with how many of them compute it: those of the nest; of those that add up one element
        together, whole groups."""
        if not stage.shared or stage.nest is not None or equal(nest.threads, 0) == 1:
            return stage
        if not stage.tensor.reduce_axes:
            # A vector is within a run along the dimension that is walked fastest.
            last = next(reversed(walked(stage.tensor)), None)
            along = last is not None and stage.tensor.axes[last] is stage.lane_axis
            even = equal(modulo(stage.lengths[last], stage.lanes), 0) if along and last is not None else 0
            return replace(stage, dealt=nest.threads, lanes=where(even, stage.lanes, 1))
        if stage.lane_axis is None or not stage.lane_axis.reduce:
            return replace(stage, dealt=nest.threads, lanes=1)
        self.conditions.require(
            equal(low_bit(stage.lanes), stage.lanes),
            f"stage {stage.tensor.name} is added up by {stage.lanes} threads; as they join what they have in pairs, vectorize it "
            f"in a power of two of lanes",
        )
        return replace(stage, dealt=maximum(floor(nest.threads / stage.lanes), 1) * stage.lanes)

    def padded(self, tensor: Tensor, extents: Sequence[Number]) -> None:
        """Notes the padding of a buffer, if it has some."""
        wishes = wanted(self.structure.loops(tensor.name).aligned, self.choose)
        if wishes:
            number = {axis.name: dim for dim, axis in enumerate(tensor.axes)}
            self.pads[tensor] = paddings(extents, {number[name]: wish for name, wish in wishes.items()})

    def swizzled(self, tensor: Tensor, lengths: Sequence[Number]) -> None:
        """Notes how many chunks of a buffer change places, if that was asked for: as many as rows are whole runs of."""
        said = self.structure.loops(tensor.name)
        if isinstance(said.swizzled, int) and said.swizzled == 1:
            return
        if not said.shared:
            raise ScheduleError(f"stage {tensor.name} is swizzled, but not shared by the threads of a block; leave out swizzle")
        wish = self.value(said.swizzled)
        self.conditions.require(
            equal(low_bit(wish), wish), f"stage {tensor.name} is swizzled by {said.swizzled} chunks; give a power of two"
        )
        row = lengths[-1] + (self.pads[tensor][-1] if tensor in self.pads else 0)
        chunk = max(1, CHUNK // dtypes.size(tensor.dtype))
        even = both(equal(modulo(row, chunk), 0), lengths[-2] > 1)
        self.swizzles[tensor] = where(even, minimum(wish, low_bit(maximum(floor(row / chunk), 1))), 1)


def _table(numbers: Sequence[int]) -> NDArray[np.int64]:
    return np.asarray(numbers, dtype=np.int64)
