"""The fold: a step list over a row of choices gives loop nests.

This is the one place that says what the steps mean. It is written for one program. With the ints of a row,
``fold(steps, dag, chosen(row))``, it gives the program that is lowered to loop IR; with a column for each choice,
``fold(steps, dag, tape.gather)``, it is the recipe that turns whole populations into loop extents, keys and features. The
printer needs no choices at all and prints the steps themselves.

Rows always decode: a choice that another choice rules out is projected onto the nearest that is legal (a producer is
never computed further in than its consumers, an epilogue never before the reduction has ended, ...). Numbers come out
in normal form, so that rows that mean the same program give the same ones (see ``canonical.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ansorlite.analysis.access import axes_of, positions
from ansorlite.analysis.branches import region_loops
from ansorlite.analysis.constants import constant_stages, follows_from_constants
from ansorlite.columns.arithmetic import both, ceil, either, equal, every, minimum, negated, product, select, where
from ansorlite.columns.tape import Number
from ansorlite.once import once_for_each
from ansorlite.schedule.nest import Attached, Loop, Nest, Packed, Program
from ansorlite.schedule.regions import Region, regions
from ansorlite.schedule.steps import (
    SHORTEST_STREAM,
    CacheRead,
    ComputeAt,
    Follow,
    Hole,
    Parallel,
    Reorder,
    Rfactor,
    Split,
    Step,
    Stream,
    Unroll,
    Vectorize,
    holes,
)
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads, substitute

#: ``(position of the hole, its table)`` to the entry that is chosen.
Choose = Callable[[int, np.ndarray], Number]
_S = TypeVar("_S", bound=Vectorize | Parallel | Unroll)


def chosen(row: Sequence[int]) -> Choose:
    """What one row chooses."""
    return lambda hole, table: int(table[row[hole]])


def fold(steps: tuple[Step, ...], dag: ComputeDAG, choose: Choose) -> Program:
    """The program that ``choose`` makes of a finished sketch's steps; ``dag`` is after those that change the set of stages."""
    return _Fold(steps, dag, choose).program()


class _Fold:
    def __init__(self, steps: tuple[Step, ...], dag: ComputeDAG, choose: Choose) -> None:
        self.dag = dag
        self.steps = steps
        self.choose = choose
        self.holes = {hole.name: position for position, hole in enumerate(holes(steps))}
        self.tensors = {tensor.name: tensor for tensor in dag.tensors}
        self.constant = constant_stages(dag)
        self.partials = {step.partial for step in steps if isinstance(step, Rfactor)}
        self.parts: dict[Axis, Number] = {}

    def program(self) -> Program:
        position = {tensor.name: i for i, tensor in enumerate(self.dag.tensors)}
        # A nest ends with its epilogue, which may read what other nests compute.
        last = {step.leader: step.stage for step in self.steps if isinstance(step, Follow)}
        found = [step for step in self.steps if isinstance(step, Reorder)]
        reorders = sorted(found, key=lambda step: position[last.get(step.stage, step.stage)])
        # Producers first: partial results are counted before the nest that folds them is shaped.
        nests = []
        for reorder in reorders:
            nest = self.nest(reorder)
            nests.append(nest)
            if nest.factor is not None and nest.epilogue is not None:
                merge = next(c for c in self.dag.consumers(nest.epilogue))
                counting = (nest.anchor.axes[0], nest.epilogue.axes[0], merge.reduce_axes[0])
                self.parts |= dict.fromkeys(counting, nest.loops[0].trip)
        return Program(self.dag, tuple(nests), self.parts)

    def value(self, hole: Hole) -> Number:
        """The choice that was made for a hole."""
        return self.choose(self.holes[hole.name], np.asarray(hole.choices, dtype=np.int64))

    def step(self, kind: type[_S], stage: str) -> _S | None:
        """The one step of this kind on this stage, if there is one."""
        return next((s for s in self.steps if isinstance(s, kind) and s.stage == stage), None)

    def chosen(self, kind: type[Parallel] | type[Vectorize] | type[Unroll], stage: str, default: int) -> Number:
        step = self.step(kind, stage)
        return self.value(step.hole) if step is not None else default

    def nest(self, reorder: Reorder) -> Nest:
        anchor = self.tensors[reorder.stage]
        follow = next((s for s in self.steps if isinstance(s, Follow) and s.leader == anchor.name), None)
        epilogue = self.tensors[follow.stage] if follow is not None else None
        factor = anchor.reduce_axes[0] if epilogue is not None and epilogue.name in self.partials else None
        loops, bands = self.loops(anchor, reorder, factor)
        unit = [every(equal(loop.trip, 1) for loop in loops if loop.band == band) for band in range(len(bands))]
        normal: list[Number] = [0]
        ended: Number = len(bands)
        for band in range(len(bands)):
            normal.append(where(unit[band], normal[-1], band + 1))
        for band in reversed(range(len(bands))):
            if bands[band]:
                ended = where(unit[band], ended, band)

        def normalised(at: Number) -> Number:
            return select(normal, at)

        epilogue_at = normalised(minimum(self.value(follow.hole), ended)) if follow is not None else 0
        lane_axis = self.lane_axis(anchor)
        lanes = 1 if lane_axis is None else minimum(self.chosen(Vectorize, anchor.name, 1), loops[-1].trip)
        loops = self.unrolled(loops, bands, lanes, self.chosen(Unroll, anchor.name, 0))
        parallel = self.parallel(anchor.name, [loop.trip for loop in loops])
        prepared = (anchor if epilogue is None else epilogue) in self.constant
        streamed = self.streamed(anchor if epilogue is None else epilogue, loops, lanes)
        places = epilogue_at, ended
        nest = Nest(anchor, loops, bands, factor, epilogue, *places, lane_axis, lanes, parallel, prepared, streamed, (), ())
        packs = (s for s in self.steps if isinstance(s, CacheRead) and s.stage == anchor.name)
        packed = tuple(self.packed(anchor, step, normalised) for step in packs)
        return replace(nest, attached=self.attached(nest, normalised), packed=packed)

    def loops(self, anchor: Tensor, reorder: Reorder, factor: Axis | None) -> tuple[tuple[Loop, ...], tuple[bool, ...]]:
        """The split loops of ``anchor`` in their order, and which bands reduce."""
        by_name: dict[str, Loop] = {}
        for split in self.steps:
            if not isinstance(split, Split) or split.stage != anchor.name:
                continue
            axis = next(a for a in axes_of(anchor) if a.name == split.axis)
            table, hole = split.hole.table, self.holes[split.hole.name]
            assert table is not None
            spans = [self.choose(hole, table.spans[:, level]) for level in range(table.parts + 1)]
            for level, name in enumerate(split.loops):
                reduce = axis.reduce and not (axis is factor and level == 0)
                trip = self.choose(hole, table.trips[:, level])
                by_name[name] = Loop(name, axis, 0, reduce, spans[level], spans[level + 1], trip, 0)
        for axis in anchor.reduce_axes:
            if axis in self.parts:
                # The parts of an rfactor are folded one by one: their number is a column, which no table could tile.
                count = self.parts[axis]
                by_name[axis.name] = Loop(axis.name, axis, 0, True, count, 1, count, 0)
        loops = tuple(replace(by_name[name], band=b) for b, band in enumerate(reorder.bands) for name in band)
        bands = tuple(any(by_name[name].reduce for name in band) for band in reorder.bands)
        return loops, bands

    def lane_axis(self, tensor: Tensor) -> Axis | None:
        vectorize = self.step(Vectorize, tensor.name)
        return next((axis for axis in axes_of(tensor) if vectorize is not None and axis.name == vectorize.axis), None)

    def unrolled(self, loops: tuple[Loop, ...], bands: tuple[bool, ...], lanes: Number, limit: Number) -> tuple[Loop, ...]:
        """Marks loops, from the innermost outward, while their straight-line code stays within ``limit`` statements.

        The marks stop at the reduction loops around the innermost tile, and at a reduction loop whose last run is short.
        """
        statements: Number = 1
        going = limit > 0
        last_space = max((band for band, reduces in enumerate(bands) if not reduces), default=0)
        result = list(loops)
        for position in reversed(range(len(loops))):
            loop = loops[position]
            if loop.band < last_space and not (bands[loop.band] and loop.band == last_space - 1):
                break
            vector = both(lanes > 1, position == len(loops) - 1)
            statements = statements * where(vector, ceil(loop.trip / lanes), loop.trip)
            fixed = either(_whole(loops, position), equal(loop.trip, 1)) if loop.reduce else 1
            going = every((going, statements <= limit, either(fixed, vector)))
            result[position] = replace(loop, unrolled=every((going, loop.trip > 1, negated(vector))))
        return tuple(result)

    def streamed(self, stored: Tensor, loops: tuple[Loop, ...], lanes: Number) -> Number:
        """Whether what the innermost loop stores goes past the caches: by the line, so in vectors, and not in short runs."""
        step = next((s for s in self.steps if isinstance(s, Stream) and s.stage == stored.name), None)
        if step is None:
            return 0
        long = loops[-1].trip * dtypes.size(stored.dtype) >= SHORTEST_STREAM
        return every((self.value(step.hole), lanes > 1, long))

    def parallel(self, stage: str, trips: list[Number]) -> Number:
        """How many outermost loops are fused and parallel, not counting a last one of a single iteration."""
        wish = self.chosen(Parallel, stage, 0)
        result: Number = 0
        for position, trip in enumerate(trips):
            result = where(both(position < wish, trip > 1), position + 1, result)
        return result

    def attached(self, nest: Nest, normalised: Callable[[Number], Number]) -> tuple[Attached, ...]:
        """The stages computed in ``nest``, producers first; none further in than one of its consumers."""
        steps = {s.stage: s for s in self.steps if isinstance(s, ComputeAt) and s.anchor == nest.anchor.name}
        members = [t for t in self.dag.computes if t.name in steps]
        forms = regions(self.dag, nest.anchor, nest.epilogue, members)
        places: dict[Tensor, Number] = {}
        result: list[Attached] = []
        for tensor in reversed(members):
            at = self.value(steps[tensor.name].hole)
            for consumer in self.dag.consumers(tensor):
                if consumer in places:
                    at = minimum(at, places[consumer])
                elif consumer is nest.epilogue:
                    at = minimum(at, nest.epilogue_at)
            # What is prepared has no loops around it.
            at = places[tensor] = 0 if tensor in self.constant else normalised(at)
            # The boxes of a stage further in are of full length, whatever is left for the last run of a reduction loop.
            read_inside = any(consumer in places for consumer in self.dag.consumers(tensor))
            tiles = nest.reaches if read_inside else nest.sizes
            result.append(self.region_stage(tensor, forms[tensor], at, tiles))
        return tuple(reversed(result))

    def region_stage(self, tensor: Tensor, region: Region, at: Number, tiles: Sequence[Mapping[Axis, Number]]) -> Attached:
        """``tiles``: for each number of bands entered, how much of the anchor's axes the region is to hold."""
        lengths: list[Number] = []
        for extent, box in zip(tensor.shape, region, strict=True):
            per_band = [extent, *(extent if box is None else box.length(sizes, extent) for sizes in tiles[1:])]
            lengths.append(select(per_band, at))
        number, lane_axis = positions(tensor), self.lane_axis(tensor)
        lanes: Number = 1
        if lane_axis is not None:
            width = lane_axis.extent if lane_axis.reduce else lengths[number[lane_axis]]
            lanes = minimum(self.chosen(Vectorize, tensor.name, 1), width)
        others = [lengths[number[axis]] for axis in region_loops(tensor, lane_axis)]
        parallel = where(equal(at, 0), self.parallel(tensor.name, others), 0)
        return Attached(tensor, region, at, tuple(lengths), lane_axis, lanes, parallel, tensor in self.constant)

    def packed(self, anchor: Tensor, step: CacheRead, normalised: Callable[[Number], Number]) -> Packed:
        tensor = self.tensors[step.tensor]
        placed = any(isinstance(s, ComputeAt | Reorder | Follow) and s.stage == tensor.name for s in self.steps)
        copy = _copy(anchor, tensor, step.packed, tensor.body is not None and not placed)
        assert copy.body is not None
        prepared = follows_from_constants(self.dag, copy.body)
        return Packed(tensor, copy, 0 if prepared else normalised(self.value(step.hole)), prepared)


def _whole(loops: tuple[Loop, ...], position: int) -> Number:
    """Whether a reduction loop always runs its full trip, because every step around it and its own divides the span."""
    around = (loop for loop in loops[: position + 1] if loop.axis is loops[position].axis)
    return every(equal(product((loop.trip, loop.step)), loop.span) for loop in around)


@once_for_each
def _copy(anchor: Tensor, tensor: Tensor, name: str, computed: bool) -> Tensor:
    """What ``anchor`` reads of ``tensor``, over the axes that the read depends on; a stage's element may be computed there."""
    assert anchor.body is not None
    (read,) = (read for read in reads(anchor.body) if read.tensor is tensor)
    used = free_vars(read)
    axes = tuple(axis for axis in axes_of(anchor) if axis in used)
    element: Expr = read
    if computed:
        assert tensor.body is not None
        element = substitute(tensor.body, dict(zip(tensor.axes, read.indices, strict=True)))
    return Tensor(name, tuple(axis.extent for axis in axes), tensor.dtype, axes, element)
