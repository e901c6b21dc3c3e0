"""The fold: the structure of a schedule and what is chosen for its holes give loop nests.

This is the one place that says what loops and places mean in numbers. It is written for one program. With what one row chooses,
``fold(structure, chosen(row))``, it gives the program that is lowered to loop IR; with a column for each choice,
``fold(structure, gathered(tape))``, it is the recipe that turns whole populations into loop extents, keys and features.

Rows always decode: a choice that another choice rules out is projected onto the nearest that is legal (a producer is
never computed further in than its consumers, an epilogue never before the reduction has ended, ...). Numbers come out
in normal form, so that rows that mean the same program give the same ones (see ``canonical.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.analysis.access import axes_of, positions
from ansorlite.analysis.branches import region_loops
from ansorlite.analysis.constants import constant_stages, follows_from_constants
from ansorlite.columns.arithmetic import both, ceil, either, equal, every, maximum, minimum, negated, product, select, where
from ansorlite.columns.tape import Column, Number
from ansorlite.errors import ScheduleError
from ansorlite.once import once_for_each
from ansorlite.schedule.nest import Attached, Loop, Nest, Packed, Program
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.regions import Region, regions
from ansorlite.schedule.samples import Choose, Hole, Trip, Value, evaluate
from ansorlite.schedule.structure import (
    Copied,
    Location,
    Sampled,
    Splitting,
    StageLoops,
    Structure,
    Tail,
    places,
)
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


@dataclass(frozen=True)
class _Walk:
    """The numbers of one loop of a stage."""

    axis: Axis
    span: Number
    step: Number
    trip: Number
    reduce: bool
    cut: bool


class _Fold:
    def __init__(self, structure: Structure, choose: Choose) -> None:
        self.dag = structure.dag
        self.structure = structure
        self.choose = choose
        self.tensors = structure.tensors
        self.constant = constant_stages(self.dag)
        self.parts: dict[Axis, Number] = {}
        self.valid: Number = 1
        self.follower: dict[str, str] = {}
        self.members: dict[str, list[Tensor]] = {}

    def program(self) -> Program:
        position = {tensor.name: i for i, tensor in enumerate(self.dag.tensors)}
        said = {t.name: self.structure.loops(t.name) for t in self.dag.computes}
        # A nest ends with its epilogue, which may read what other nests compute.
        home = {name: self.structure.anchor(name) for name in said}
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
            nest = self.nest(self.tensors[each], said[each])
            nests.append(nest)
            if nest.factor is not None and nest.epilogue is not None:
                merge = next(c for c in self.dag.consumers(nest.epilogue))
                counting = (nest.anchor.axes[0], nest.epilogue.axes[0], merge.reduce_axes[0])
                self.parts |= dict.fromkeys(counting, nest.loops[0].trip)
        return Program(self.dag, tuple(nests), self.parts, self.valid)

    def value(self, value: Value) -> Number:
        return evaluate(value, self.choose)

    def nest(self, anchor: Tensor, said: StageLoops) -> Nest:
        follower = self.follower.get(anchor.name)
        epilogue = self.tensors[follower] if follower is not None else None
        factor = self.factor(anchor, epilogue)
        members = self.members.get(anchor.name, [])
        walks = self.walks(anchor, said, factor, tiled=epilogue is not None)
        names = _kept(said.loops, walks)
        vector = said.vector[0] if said.vector is not None and said.vector[0] in names else None
        if vector is not None and names[-1] != vector:
            raise ScheduleError(
                f"loop {vector} of stage {anchor.name} is vectorized, but {names[-1]} is the innermost one; "
                f"reorder {vector} to the end"
            )
        if vector is not None and vector not in _innermost(said):
            raise ScheduleError(
                f"loop {vector} of stage {anchor.name} is vectorized, but its iterations are several elements apart: "
                f"vectorize the innermost of the loops that the axis was split into"
            )
        inside = [self.structure.loops(t.name).at for t in members] + [copy.at for copy in said.copies]
        inside += [self.structure.loops(follower).at] if follower is not None else []
        if vector is not None and LoopRef(anchor.name, vector) in {place for at in inside for place in places(at)}:
            raise ScheduleError(
                f"something is computed inside of loop {vector} of stage {anchor.name}, which is vectorized; "
                f"compute it further out"
            )
        depths = _Depths(said, names, inside)
        grouped = _bands(names, walks, depths.all, vector, isinstance(anchor.body, Reduce))
        loops = tuple(
            Loop(name, walk.axis, number, walk.reduce, walk.span, walk.step, walk.trip, 0)
            for number, (_, members_) in enumerate(grouped)
            for name, walk in ((name, walks[name]) for name in members_)
        )
        cut = frozenset(name for name in names if walks[name].cut)
        bands = tuple(reduces for reduces, _ in grouped)
        unit = [every(equal(loop.trip, 1) for loop in loops if loop.band == band) for band in range(len(bands))]
        normal: list[Number] = [0]
        ended: Number = len(bands)
        for band in range(len(bands)):
            normal.append(where(unit[band], normal[-1], band + 1))
        for band in reversed(range(len(bands))):
            if bands[band]:
                ended = where(unit[band], ended, band)

        def place(at: Location) -> Number:
            """The number of bands around a place, before it is projected."""
            found = [0 if loop is None else _bands_around(depths.of(loop.name), grouped) for loop in places(at)]
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
        mixed = _mixed(said, walks)
        parallel = self.parallel(said, [loop.trip for loop in loops], anchor.name, names)
        loops = self.unrolled(loops, said, cut, mixed, lanes, parallel)
        stored = anchor if epilogue is None else epilogue
        prepared = stored in self.constant
        streamed = self.streamed(stored, loops, lanes)
        numbers = epilogue_at, ended
        nest = Nest(
            anchor, loops, bands, factor, epilogue, *numbers, lane_axis, lanes, parallel, prepared, streamed, cut, mixed, (), ()
        )
        attached = self.attached(nest, members, place, normalised)
        packed = tuple(self.packed(anchor, copy, attached, lambda at: normalised(place(at))) for copy in said.copies)
        return replace(nest, attached=attached, packed=packed)

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

    def walks(self, anchor: Tensor, said: StageLoops, factor: Axis | None, tiled: bool) -> dict[str, _Walk]:
        """The numbers of the loops of a stage, by name."""
        found: dict[str, _Walk] = {}
        by_name = {axis.name: axis for axis in axes_of(anchor)}
        adds_outside = _adds_outside(anchor, said)
        for name in said.axes:
            axis = by_name[name]
            extent = self.parts.get(axis, axis.extent)
            cut = axis.reduce or (not tiled and name in adds_outside)
            found[name] = _Walk(axis, extent, 1, extent, axis.reduce, cut)
        for split in said.splits:
            whole = found.pop(split.loop)
            parts = self.split(anchor.name, whole, split)
            for level, (name, part) in enumerate(zip(split.parts, parts, strict=True)):
                makes_parts = whole.axis is factor and level == 0 and split.loop == whole.axis.name
                found[name] = replace(part, reduce=part.reduce and not makes_parts)
        return found

    def split(self, stage: str, whole: _Walk, split: Splitting) -> list[_Walk]:
        """The loops that a loop becomes."""
        if split.tail is Tail.SHIFT and whole.cut:
            raise ScheduleError(
                f"loop {split.loop} of stage {stage} adds up what its last iterations cover: shifted inwards, they would add "
                f"twice; cut them"
            )
        cut = whole.cut or split.tail is Tail.CUT
        hole = _tile(split.factors)
        if hole is not None and hole.table is not None and equal(whole.span, hole.table.extent) == 1 and whole.step == 1:
            table = hole.table
            spans = [self.choose(hole, table.spans[:, level]) for level in range(table.parts + 1)]
            trips = [self.choose(hole, table.trips[:, level]) for level in range(table.parts)]
            cut = cut and (whole.reduce or not table.perfect)
        else:
            spans = self.chain(stage, whole, split)
            trips = [ceil(spans[level] / spans[level + 1]) for level in range(len(split.factors))]
            if cut:
                self.check_cuts(stage, whole, split, spans, trips)
        return [
            replace(whole, span=spans[level], step=spans[level + 1], trip=trips[level], cut=cut)
            for level in range(len(split.factors))
        ]

    def check_cuts(self, stage: str, whole: _Walk, split: Splitting, spans: Sequence[Number], trips: Sequence[Number]) -> None:
        """What is cut short ends where the axis ends: of a part of it, it would reach into the next part."""
        extent = self.parts.get(whole.axis, whole.axis.extent)
        for level, trip in enumerate(trips):
            even = either(equal(trip * spans[level + 1], spans[level]), equal(spans[level], extent))
            if isinstance(even, Column):
                self.valid = both(self.valid, even)
            elif not even:
                raise ScheduleError(
                    f"loop {split.parts[level]} of stage {stage} walks {spans[level]} of the {extent} elements of "
                    f"{whole.axis.name} in steps of {spans[level + 1]}, which do not divide them, and cannot be shifted inwards, "
                    f"as it would add twice; choose factors that divide all but the outermost loop"
                )

    def chain(self, stage: str, whole: _Walk, split: Splitting) -> list[Number]:
        """The spans of the loops that a loop becomes, from the outermost in, and the step of the innermost."""
        wanted = [None if factor is None else self.value(factor) for factor in split.factors]
        if all(factor is not None for factor in wanted):
            covered = product(factor for factor in wanted if factor is not None) * whole.step
            enough = covered >= whole.span
            if isinstance(enough, Column):
                self.valid = both(self.valid, enough)
            elif not enough:
                raise ScheduleError(
                    f"loop {split.loop} of stage {stage} has {_told([whole.trip])} iterations, of which the factors "
                    f"{_told(wanted)} cover fewer; make one of them None, which walks what is left"
                )
        # What the loops outside of None leave to it.
        left: Number = whole.span
        open_ = next((level for level, factor in enumerate(wanted) if factor is None), 0)
        for factor in wanted[:open_]:
            assert factor is not None
            left = ceil(left / factor)
        spans: list[Number] = [whole.step]
        for level in reversed(range(len(wanted))):
            factor = wanted[level]
            wide = left if factor is None else spans[-1] * factor
            if factor is None and open_ > 0:
                wide = ceil(left / spans[-1]) * spans[-1]
            spans.append(minimum(wide, whole.span))
        spans[-1] = whole.span
        return spans[::-1]

    def unrolled(
        self,
        loops: tuple[Loop, ...],
        said: StageLoops,
        cut: frozenset[str],
        mixed: frozenset[Axis],
        lanes: Number,
        parallel: Number,
    ) -> tuple[Loop, ...]:
        """Marks loops, from the innermost outward, while their straight-line code stays within the limit.

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
        return tuple(result)

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
        kept = [name for name in shared if name in names]
        if list(names[: len(kept)]) != kept:
            raise ScheduleError(
                f"the loops {', '.join(shared)} of stage {stage} are to be parallel, but the outermost ones are "
                f"{', '.join(names[: len(kept)])}; reorder them"
            )
        if said.vector is not None and said.vector[0] in kept:
            raise ScheduleError(f"loop {said.vector[0]} of stage {stage} cannot be both parallel and vectorized; split it in two")
        wish = self.value(depth)
        result: Number = 0
        for position, trip in enumerate(trips[: len(kept)]):
            result = where(both(position < wish, trip > 1), position + 1, result)
        return result

    # What is computed inside of a nest -------------------------------------------------------------------------------

    def attached(
        self, nest: Nest, members: Sequence[Tensor], place: Callable[[Location], Number], normalised: Callable[[Number], Number]
    ) -> tuple[Attached, ...]:
        """The stages computed in ``nest``, producers first; none further in than one of its consumers."""
        forms = regions(self.dag, nest.anchor, nest.epilogue, members)
        at_of: dict[Tensor, Number] = {}
        result: list[Attached] = []
        for tensor in reversed(members):
            at = place(self.structure.loops(tensor.name).at)
            for consumer in self.dag.consumers(tensor):
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
            at = at_of[tensor] = 0 if tensor in self.constant else normalised(at)
            # The boxes of a stage further in are of full length, whatever is left for the last run of a reduction loop.
            read_inside = any(consumer in at_of for consumer in self.dag.consumers(tensor))
            tiles = nest.reaches if read_inside else nest.sizes
            result.append(self.region_stage(tensor, forms[tensor], at, tiles))
        return tuple(reversed(result))

    def region_stage(self, tensor: Tensor, region: Region, at: Number, tiles: Sequence[Mapping[Axis, Number]]) -> Attached:
        """``tiles``: for each number of bands entered, how much of the anchor's axes the region is to hold."""
        said = self.structure.loops(tensor.name)
        lengths: list[Number] = []
        for extent, box in zip(tensor.shape, region, strict=True):
            per_band = [extent, *(extent if box is None else box.length(sizes, extent) for sizes in tiles[1:])]
            lengths.append(select(per_band, at))
        number, lane_axis = positions(tensor), None
        lanes: Number = 1
        if said.vector is not None:
            lane_axis = next(axis for axis in axes_of(tensor) if axis.name == said.vector[0])
            width = lane_axis.extent if lane_axis.reduce else lengths[number[lane_axis]]
            lanes = minimum(self.value(said.vector[1]), width)
        order = region_loops(tensor, lane_axis)
        trips = [lengths[number[axis]] for axis in order]
        shared = self.parallel(said, trips, tensor.name, [axis.name for axis in order])
        parallel = where(equal(at, 0), shared, 0)
        return Attached(tensor, region, at, tuple(lengths), lane_axis, lanes, parallel, tensor in self.constant)

    def packed(self, anchor: Tensor, copied: Copied, attached: Sequence[Attached], place: Callable[[Location], Number]) -> Packed:
        tensor = self.tensors[copied.tensor]
        copy = _copy(anchor, tensor, copied.name, copied.computed)
        assert copy.body is not None
        prepared = follows_from_constants(self.dag, copy.body)
        # What is computed inside of the nest can be copied no further out than there.
        there: Number = next((stage.at for stage in attached if stage.tensor is tensor), 0)
        return Packed(tensor, copy, 0 if prepared else maximum(place(copied.at), there), prepared)


def _told(numbers: Sequence[Number | None]) -> str:
    """For a message; what is sampled has no number."""
    return ", ".join("a sample" if isinstance(number, Column) else str(number) for number in numbers)


def _table(numbers: Sequence[int]) -> NDArray[np.int64]:
    return np.asarray(numbers, dtype=np.int64)


def _tile(factors: Sequence[Value | None]) -> Hole | None:
    """The hole whose tile the factors are, level by level and whole."""
    trips = [factor for factor in factors if isinstance(factor, Trip)]
    if not trips or len(trips) < len(factors) or any(trip.hole is not trips[0].hole for trip in trips):
        return None
    table = trips[0].hole.table
    levels = [trip.level for trip in trips]
    return trips[0].hole if table is not None and levels == list(range(table.parts)) else None


def _kept(names: Sequence[str], walks: Mapping[str, _Walk]) -> list[str]:
    """The loops without those over axes of one element; a nest has one loop at least, to hang annotations on."""
    return [name for name in names if walks[name].axis.extent > 1] or list(names[-1:])


class _Depths:
    """How many loops are around the places of a nest. Loops that threads share are one: nothing is computed between them.

    Attributes:
        all: the depths at which something may be computed.
    """

    def __init__(self, said: StageLoops, names: Sequence[str], locations: Sequence[Location]) -> None:
        self._loops = said.loops
        self._names = names
        self._shared = sum(name in names for name in (said.parallel[0] if said.parallel is not None else ()))
        self.all = frozenset(self.of(loop.name) for at in locations for loop in places(at) if loop is not None)

    def of(self, loop: str) -> int:
        """Of the place right inside of a loop."""
        inside = self._loops[: self._loops.index(loop) + 1]
        depth = sum(name in inside for name in self._names)
        return max(depth, self._shared)


#: The loops of a band, and whether they add up.
_Band: TypeAlias = tuple[bool, list[str]]


def _bands(
    names: Sequence[str], walks: Mapping[str, _Walk], depths: Collection[int], vector: str | None, reduces: bool
) -> list[_Band]:
    """The loops in runs of like ones, cut where something may be computed between them.

    The innermost tile of a reduction, the space loops behind all that add up, is a band even where it has no loops. A vectorised
    loop that adds up is a last band behind it; then a band that adds up is before the tile, too.
    """
    lane = [vector] if vector is not None and walks[vector].reduce else []
    result: list[_Band] = []
    for position, name in enumerate(names[: len(names) - len(lane)]):
        if not result or position in depths or result[-1][0] != walks[name].reduce:
            result.append((walks[name].reduce, []))
        result[-1][1].append(name)
    if lane and not any(adds for adds, _ in result[-2:]):
        result.append((True, []))
    if reduces and (not result or result[-1][0]):
        result.append((False, []))
    return [*result, (True, lane)] if lane else result


def _bands_around(depth: int, bands: Sequence[_Band]) -> int:
    """The fewest outermost bands that have ``depth`` loops."""
    loops = accumulate((len(names) for _, names in bands), initial=0)
    return next(number for number, count in enumerate(loops) if count >= depth)


def _adds_outside(anchor: Tensor, said: StageLoops) -> frozenset[str]:
    """The space axes of which a part is walked inside of a loop that adds up: a shifted tile of these would be added to twice."""
    parents = {part: split.loop for split in said.splits for part in split.parts}

    def axis(name: str) -> str:
        while name in parents:
            name = parents[name]
        return name

    reduce = {each.name for each in anchor.reduce_axes}
    first = next((position for position, name in enumerate(said.loops) if axis(name) in reduce), len(said.loops))
    return frozenset(axis(name) for name in said.loops[first:] if axis(name) not in reduce)


def _innermost(said: StageLoops) -> frozenset[str]:
    """The loops whose iterations are one element apart: the innermost level of each axis."""
    last = {split.loop: split.parts[-1] for split in said.splits}

    def level(name: str) -> str:
        return level(last[name]) if name in last else name

    return frozenset(map(level, said.axes))


def _mixed(said: StageLoops, walks: Mapping[str, _Walk]) -> frozenset[Axis]:
    """The axes of which an inner level is walked outside of an outer one."""
    levels = list(said.axes)
    for split in said.splits:
        place = levels.index(split.loop)
        levels[place : place + 1] = split.parts
    outward: dict[Axis, int] = {}
    found = set()
    for name in said.loops:
        axis, level = walks[name].axis, levels.index(name)
        if level < outward.setdefault(axis, level):
            found.add(axis)
        outward[axis] = level
    return frozenset(found)


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
