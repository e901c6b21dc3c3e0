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

from ansorlite.analysis.access import accesses, axes_of, positions, walked
from ansorlite.analysis.branches import region_loops
from ansorlite.analysis.constants import constant_stages, follows_from_constants
from ansorlite.analysis.predicates import fetchable
from ansorlite.columns.arithmetic import (
    both,
    ceil,
    either,
    equal,
    every,
    floor,
    low_bit,
    maximum,
    minimum,
    modulo,
    negated,
    product,
    select,
    where,
)
from ansorlite.columns.tape import Column, Number
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import LoopKind, Scope, may_nest
from ansorlite.once import once_for_each
from ansorlite.schedule.accumulators import check_starts, in_scope
from ansorlite.schedule.bands import Depths, bands_around, bands_of, kept
from ansorlite.schedule.nest import Attached, Fetched, Loop, Nest, Packed, Program
from ansorlite.schedule.packing import copy_loops
from ansorlite.schedule.padding import paddings, wanted
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.regions import Region, regions
from ansorlite.schedule.samples import Choose, Value, evaluate
from ansorlite.schedule.structure import (
    Ahead,
    Copied,
    Location,
    Sampled,
    StageLoops,
    Structure,
    places,
)
from ansorlite.schedule.walks import Walk, Walks, chain, innermost, mixed_axes
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Expr, Reduce
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads, substitute

#: Bytes that a streaming store's innermost loop writes in a row, at least: at both ends of a run a line is written in two parts.
SHORTEST_STREAM: Final = 512


def fold(structure: Structure, choose: Choose) -> Program:
    """The program that ``choose`` makes of a finished structure.

    Raises:
        ScheduleError: no choice makes a program of it; the message names stage, loop and cure.
    """
    return _Fold(structure, choose).program()


class _Fold:
    def __init__(self, structure: Structure, choose: Choose) -> None:
        self.dag = structure.dag
        self.structure = structure
        self.choose = choose
        self.tensors = structure.tensors
        # What threads share is computed in every one of their blocks, whatever it follows from.
        self.constant = frozenset(t for t in constant_stages(self.dag) if not structure.loops(t.name).shared)
        self.parts: dict[Axis, Number] = {}
        self.walks = Walks(choose, self.parts)
        self.valid: Number = 1
        self.follower: dict[str, str] = {}
        self.members: dict[str, list[Tensor]] = {}
        self.pads: dict[Tensor, tuple[Number, ...]] = {}

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
        return Program(self.dag, tuple(nests), self.parts, both(self.valid, self.walks.valid), self.pads)

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
        bound = dict(said.bound)
        loops = tuple(
            Loop(name, walk.axis, depth[name], number, walk.reduce, walk.span, walk.step, walk.trip, 0, bound.get(name))
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
        parallel = self.parallel(said, [loop.trip for loop in loops], anchor.name, names)
        if box is not None:
            parallel = where(equal(box, 0), parallel, 0)
        self.check_bound(anchor.name, loops, cut, mixed)
        loops, written = self.unrolled(loops, said, cut, mixed, lanes, parallel)
        stored = anchor if epilogue is None else epilogue
        if box is None:
            self.padded(stored, [self.parts.get(axis, axis.extent) for axis in stored.axes])
        if stored is not anchor and said.aligned:
            raise ScheduleError(
                f"stage {anchor.name} is a tile of accumulators: storage_align is of stages that are stored, and of copies"
            )
        prepared = stored in self.constant
        streamed = self.streamed(stored, loops, lanes) if box is None else 0
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
            streamed,
            cut,
            mixed,
            written,
            (),
            (),
        )
        self.valid = both(self.valid, in_scope(nest))
        self.check_sums(nest, said, walks)
        attached = self.attached(nest, members, place, normalised, box is None)
        packed = tuple(self.packed(nest, copy, attached, lambda at: normalised(place(at)), box is None) for copy in said.copies)
        fetched = tuple(self.fetched(nest, said, ahead, attached) for ahead in said.prefetched if ahead.loop in names)
        return replace(nest, attached=attached, packed=packed, fetched=fetched)

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

    # Loops of one stage -------------------------------------------------------------------------------------------

    def unrolled(
        self,
        loops: tuple[Loop, ...],
        said: StageLoops,
        cut: frozenset[str],
        mixed: frozenset[Axis],
        lanes: Number,
        parallel: Number,
    ) -> tuple[tuple[Loop, ...], Number]:
        """Marks loops, from the innermost outward, while their straight-line code stays within the limit; and how many iterations
        of theirs are written out.

        A loop whose last run may be short stays a loop, and so does one that threads share.
        """
        names, wish = said.unrolled or ((), 0)
        shared = said.parallel[0] if said.parallel is not None else ()
        limit = self.value(wish)
        statements: Number = 1
        going: Number = limit > 0
        result = list(loops)
        for position in reversed(range(len(loops))):
            loop = loops[position]
            vector = both(lanes > 1, position == len(loops) - 1)
            if loop.name not in names:
                statements = statements * where(vector, ceil(loop.trip / lanes), 1)
                continue
            statements = statements * where(vector, ceil(loop.trip / lanes), loop.trip)
            fixed = either(_whole(loops, position, mixed), equal(loop.trip, 1)) if loop.name in cut else 1
            alone = parallel <= position if loop.name in shared else 1
            going = every((going, statements <= limit, either(fixed, vector), alone))
            result[position] = replace(loop, unrolled=every((going, loop.trip > 1, negated(vector))))
        written = product(where(loop.unrolled, loop.trip, 1) for loop in result)
        return tuple(result), minimum(written, maximum(limit, 1))

    def check_bound(self, stage: str, loops: tuple[Loop, ...], cut: frozenset[str], mixed: frozenset[Axis]) -> None:
        """Loops that are bound nest as their machine has it, and have the same iterations in every run."""
        around: list[Loop] = []
        for position, loop in enumerate(loops):
            if loop.bound is None:
                continue
            between = loops[position - 1].name if position else ""
            fused = bool(around) and around[-1] is loops[position - 1] and around[-1].bound is loop.bound
            for outer in around:
                if outer.bound is loop.bound and not fused:
                    raise ScheduleError(
                        f"loops {outer.name} and {loop.name} of stage {stage} are bound to {loop.bound.value}, but {between} is "
                        f"between them; reorder them side by side: they are fused"
                    )
                if outer.bound is not None and outer.bound is not loop.bound and not may_nest(outer.bound, loop.bound):
                    raise ScheduleError(
                        f"loop {loop.name} of stage {stage}, bound to {loop.bound.value}, is inside of loop {outer.name}, bound "
                        f"to {outer.bound.value}; reorder: block, vthread, then warp and lane, or thread, from the outermost in"
                    )
            around.append(loop)
            if loop.name in cut:
                whole = either(_whole(loops, position, mixed), equal(loop.trip, 1))
                self.require(
                    whole,
                    f"loop {loop.name} of stage {stage} is bound to {loop.bound.value}, but its last run is short; "
                    f"choose factors that divide the loops of {loop.axis.name}",
                )

    def check_sums(self, nest: Nest, said: StageLoops, walks: Mapping[str, Walk]) -> None:
        """Independent iterations that are shifted onto one another do not add to one element in memory."""
        if nest.epilogue is not None or not isinstance(nest.anchor.body, Reduce):
            return
        shared = said.parallel[0] if said.parallel is not None else ()
        inner = nest.inner_reduction
        # Registers that are set at the start of a sum are moved to memory whole.
        moved = both(nest.promoted, nest.reduce_at >= inner) if inner is not None else 0
        for position, loop in enumerate(nest.loops):
            walk = walks[loop.name]
            if (loop.bound is None and loop.name not in shared) or walk.cut or walk.even:
                continue
            alone = nest.parallel <= position if loop.bound is None else 0
            self.require(
                either(either(equal(loop.trip * loop.step, loop.span), alone), moved),
                f"loop {loop.name} of stage {nest.anchor.name} walks {loop.span} elements in steps of {loop.step}: its last "
                f"iteration would add to elements of another one at the same time; choose factors that divide, or cache_write",
            )

    def require(self, flag: Number, problem: str) -> None:
        """A condition of rows: where it is not met the row is invalid.

        Raises:
            ScheduleError: there is one row, and it is not.
        """
        if isinstance(flag, Column):
            self.walks.valid = both(self.walks.valid, flag)
        elif not flag:
            raise ScheduleError(problem)

    def streamed(self, stored: Tensor, loops: tuple[Loop, ...], lanes: Number) -> Number:
        """Whether what the innermost loop stores goes past the caches: by the line, so in vectors, and not in short runs."""
        wish = self.value(self.structure.loops(stored.name).streamed)
        if not loops or (isinstance(wish, int) and not wish):
            return 0
        long = loops[-1].trip * dtypes.size(stored.dtype) >= SHORTEST_STREAM
        return every((wish, lanes > 1, long))

    def parallel(self, said: StageLoops, trips: Sequence[Number], stage: str, names: Sequence[str]) -> Number:
        """How many outermost loops are fused and parallel, not counting a last one of a single iteration."""
        shared, depth = said.parallel or ((), 0)
        there = [name for name in shared if name in names]
        if list(names[: len(there)]) != there:
            raise ScheduleError(
                f"the loops {', '.join(shared)} of stage {stage} are to be parallel, but the outermost ones are "
                f"{', '.join(names[: len(there)])}; reorder them"
            )
        if said.vector is not None and said.vector[0] in there:
            raise ScheduleError(f"loop {said.vector[0]} of stage {stage} cannot be both parallel and vectorized; split it in two")
        wish = self.value(depth)
        result: Number = 0
        for position, trip in enumerate(trips[: len(there)]):
            result = where(both(position < wish, trip > 1), position + 1, result)
        return result

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
            if self.structure.loops(tensor.name).shared:
                self.check_shared(nest, tensor.name, at, root)
            result.append(self.dealt(nest, self.region_stage(tensor, forms[tensor], at, tiles, root)))
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
        shared = self.parallel(said, trips, tensor.name, [axis.name for axis in order])
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
        self.require(
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

    def packed(
        self, nest: Nest, copied: Copied, attached: Sequence[Attached], place: Callable[[Location], Number], root: bool
    ) -> Packed:
        tensor = self.tensors[copied.tensor]
        copy = _copy(nest.anchor, tensor, copied.name, copied.computed)
        assert copy.body is not None
        # What one box reads is copied with it, in every call.
        prepared = root and follows_from_constants(self.dag, copy.body)
        # What is computed inside of the nest can be copied no further out than there.
        there: Number = next((stage.at for stage in attached if stage.tensor is tensor), 0)
        at = 0 if prepared else maximum(place(copied.at), there)
        if copied.shared:
            self.check_shared(nest, copied.name, at, root)
        wishes = wanted(copied.aligned, self.choose)
        pads: dict[str, Number] = {}
        stride: Number = 1
        for loop in reversed(nest.loops) if wishes else ():
            inside = both(at <= loop.band, loop.axis in copy.axes)
            if loop.name in wishes:
                factor, offset = wishes[loop.name]
                # Of loops of one iteration there is no dimension; and neighbours along the innermost one lie side by side.
                there = every((inside, loop.trip > 1, stride > 1))
                pads[loop.name] = where(there, modulo(offset - stride, factor), 0)
                stride = stride + pads[loop.name]
            stride = stride * where(inside, loop.trip, 1)
        return Packed(tensor, copy, at, prepared, copied.shared, pads, *copy_loops(nest, copy, at, pads))

    def fetched(self, nest: Nest, said: StageLoops, ahead: Ahead, attached: Sequence[Attached]) -> Fetched:
        read = [access for access in accesses(nest.anchor) if access.tensor.name == ahead.tensor]
        if len(read) != 1 or not fetchable(read[0]):
            raise ScheduleError(
                f"stage {nest.anchor.name} reads {ahead.tensor} in another way than when it was to be asked for ahead; "
                f"rewrite the computation before prefetch"
            )
        tensor = read[0].tensor
        position = next(number for number, loop in enumerate(nest.loops) if loop.name == ahead.loop)
        loop = nest.loops[position]
        what = f"{tensor.name} cannot be asked for ahead in loop {ahead.loop} of stage {nest.anchor.name}"
        if loop.bound is not None or (said.vector is not None and said.vector[0] == ahead.loop):
            raise ScheduleError(f"{what}, whose iterations do not run one after another; name another loop")
        self.require(nest.parallel <= position, f"{what}, whose iterations threads share; name a loop inside of those")
        here = next((stage.at for stage in attached if stage.tensor is tensor), 0)
        self.require(equal(here, 0), f"{what}: it is computed inside of these loops")
        return Fetched(tensor, position, minimum(self.value(ahead.distance), maximum(loop.trip - 1, 1)))

    def check_shared(self, nest: Nest, name: str, at: Number, root: bool) -> None:
        """What the threads of a block share is made inside of some root loop, and outside of those over threads."""
        if not root:
            raise ScheduleError(
                f"{name} is to be shared by the threads of a block, but {nest.anchor.name} is itself computed in another one's "
                f"loops: make {name} in those"
            )
        threads = [loop for loop in nest.loops if loop.bound not in (None, LoopKind.BLOCK)]
        outside = every(either(at <= loop.band, equal(loop.trip, 1)) for loop in threads)
        self.require(
            both(at > 0, outside),
            f"{name} is to be shared by the threads of a block: make it inside of a loop of {nest.anchor.name}, "
            f"outside of the loops that are bound to threads",
        )


def _table(numbers: Sequence[int]) -> NDArray[np.int64]:
    return np.asarray(numbers, dtype=np.int64)


def _whole(loops: tuple[Loop, ...], position: int, mixed: frozenset[Axis]) -> Number:
    """Whether a loop always runs its full trip, because every step around it and its own divides the span."""
    axis = loops[position].axis
    around = loops if axis in mixed else loops[: position + 1]
    return every(equal(product((loop.trip, loop.step)), loop.span) for loop in around if loop.axis is axis)


@once_for_each
def _copy(anchor: Tensor, tensor: Tensor, name: str, computed: bool) -> Tensor:
    """What ``anchor`` reads of ``tensor``, over the axes that the read depends on; a stage's element may be computed there."""
    assert anchor.body is not None
    found = [read for read in reads(anchor.body) if read.tensor is tensor]
    if len(found) != 1:
        raise ScheduleError(
            f"stage {anchor.name} reads {len(found)} elements of {tensor.name} at a time, so not from a copy; "
            f"rewrite the computation before cache_read"
        )
    (read,) = found
    used = free_vars(read)
    axes = tuple(axis for axis in axes_of(anchor) if axis in used)
    element: Expr = read
    if computed:
        assert tensor.body is not None
        element = substitute(tensor.body, dict(zip(tensor.axes, read.indices, strict=True)))
    return Tensor(name, tuple(axis.extent for axis in axes), tensor.dtype, axes, element)
