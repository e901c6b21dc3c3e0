"""The fold: a step list over rows of ints gives loop nests in columns.

This is the one place that says what the steps mean. ``fold(steps, dag, rows)`` takes ``n`` rows at once and returns a
:class:`Program` whose every number is a column of shape ``(n,)``: trips, steps, lanes, places. One program is a
population of one: lowering reads element 0, features read whole columns. The printer needs no values at all and prints
the steps themselves.

Rows always decode: a choice that another choice rules out is projected onto the nearest that is legal (a producer is
never computed further in than its consumers, an epilogue never before the reduction has ended, ...). Columns come out
in normal form, so that rows that mean the same program give the same columns (see ``Program.canonical``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from ansorlite.analysis.access import axes_of, positions
from ansorlite.analysis.branches import region_loops
from ansorlite.analysis.constants import constant_stages, follows_from_constants
from ansorlite.schedule.regions import Region, regions
from ansorlite.schedule.steps import (
    CacheRead,
    ComputeAt,
    Follow,
    Hole,
    Parallel,
    Reorder,
    Rfactor,
    Split,
    Step,
    Unroll,
    Vectorize,
    holes,
)
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr, Reduce, free_vars, reads, substitute
from ansorlite.te.tensor import Tensor

Column = np.ndarray
_S = TypeVar("_S", bound=Vectorize | Parallel | Unroll)


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop of an anchor, for ``n`` programs.

    Attributes:
        axis: the anchor's axis that the loop walks.
        band: which band of like loops it belongs to.
        reduce: whether its iterations add to the same elements.
        span: (n,) how many elements of the axis one run of the loop covers.
        step: (n,) how many of them one iteration covers.
        trip: (n,) iterations.
        unrolled: (n,) bool.
    """

    name: str
    axis: Axis
    band: int
    reduce: bool
    span: Column
    step: Column
    trip: Column
    unrolled: Column


@dataclass(frozen=True, eq=False)
class Attached:
    """A stage without a nest of its own: computed region by region inside an anchor's loops, or whole at the root.

    Attributes:
        region: which box of it the anchor's tiles need.
        at: (n,) after how many bands of the anchor; 0 is the root, where all of it is computed.
        lengths: for each dimension (n,) elements of the region.
        lane_axis: the axis that is vectorised; ``None`` for a scalar.
        lanes: (n,) vector width, 1 for a scalar.
        parallel: (n,) how many of its outermost loops are fused and parallel; 0 unless at the root.
        prepared: whether it is computed once, before the first call; then it is at the root.
    """

    tensor: Tensor
    region: Region
    at: Column
    lengths: tuple[Column, ...]
    lane_axis: Axis | None
    lanes: Column
    parallel: Column
    prepared: bool


@dataclass(frozen=True, eq=False)
class Packed:
    """What the anchor reads of a tensor, laid out in order of use: a copy of an input, or the computation of a stage.

    Attributes:
        tensor: what is read.
        copy: the copy's name, and its element in terms of the anchor's axes that the read depends on, which are its axes.
        at: (n,) after how many bands of the anchor; 0 is the root.
        prepared: whether the copy is made once, before the first call; then that is at the root.
    """

    tensor: Tensor
    copy: Tensor
    at: Column
    prepared: bool


@dataclass(frozen=True, eq=False)
class Nest:
    """One root loop nest: an anchor with its loops, and what is computed inside of them.

    Attributes:
        loops: outermost first.
        bands: for each band whether it is a reduction's.
        factor: the axis whose first loop makes partial results, when the anchor is an rfactor.
        epilogue: the element-wise consumer that runs tile by tile after the anchor, if any.
        epilogue_at: (n,) after how many bands; 0 without an epilogue.
        reduce_at: (n,) the first band that really reduces; the number of bands if none does. Accumulators start here.
        lane_axis: the axis of the innermost loop.
        lanes: (n,) vector width of the innermost loop, 1 when it is scalar.
        parallel: (n,) how many of the outermost loops are fused and parallel.
        prepared: whether it runs once, before the first call.
    """

    anchor: Tensor
    loops: tuple[Loop, ...]
    bands: tuple[bool, ...]
    factor: Axis | None
    epilogue: Tensor | None
    epilogue_at: Column
    reduce_at: Column
    lane_axis: Axis | None
    lanes: Column
    parallel: Column
    prepared: bool
    attached: tuple[Attached, ...]
    packed: tuple[Packed, ...]

    def band_start(self, band: int) -> int:
        """The position of the first loop of ``band``, or the number of loops."""
        return next((i for i, loop in enumerate(self.loops) if loop.band >= band), len(self.loops))

    @cached_property
    def last_space(self) -> int:
        """The band of the innermost space loops: the innermost tile."""
        return max((band for band, reduces in enumerate(self.bands) if not reduces), default=0)

    @cached_property
    def inner_reduction(self) -> int | None:
        """The reduction band right around the innermost tile, if there is one."""
        band = self.last_space - 1
        return band if isinstance(self.anchor.body, Reduce) and band >= 0 and self.bands[band] else None

    @cached_property
    def vector(self) -> Column:
        """(n,) bool: whether the innermost loop is vectorised."""
        return np.asarray(self.lanes > 1)

    @cached_property
    def in_lanes(self) -> Column:
        """(n,) bool: whether it is a reduction that is vectorised: each element is summed in lanes of partial results."""
        return np.asarray(self.vector & bool(self.loops and self.loops[-1].reduce))

    def expanded(self, position: int) -> Column:
        """(n,) bool: whether the loop is no loop in the machine code: of one iteration, unrolled, or the vectorised one."""
        loop = self.loops[position]
        inside = np.asarray(loop.unrolled | (loop.trip == 1))
        return np.asarray(inside | self.vector) if position == len(self.loops) - 1 else inside

    @cached_property
    def promoted(self) -> Column:
        """(n,) bool: whether accumulators move to registers while the inner reduction runs around the innermost tile."""
        band = self.inner_reduction
        if band is None:
            return np.zeros(len(self.lanes), dtype=bool)
        straight = np.ones(len(self.lanes), dtype=bool)
        runs = np.zeros(len(self.lanes), dtype=bool)
        for position, loop in enumerate(self.loops):
            if loop.band > band:
                straight &= self.expanded(position)
            if loop.band >= band and loop.reduce:
                runs |= loop.trip > 1
        return np.asarray((straight & runs) | self.in_lanes)

    @cached_property
    def tile_is_constant(self) -> Column:
        """(n,) bool: whether every index of the local tile of accumulators is constant, so that it is registers itself."""
        result = np.full(len(self.lanes), self.epilogue is not None)
        for position, loop in enumerate(self.loops):
            if not loop.reduce:
                result &= self.expanded(position) | (loop.band < self.epilogue_at)
        return result

    @cached_property
    def apart(self) -> Column:
        """(n,) bool: whether the promoted accumulators are a buffer apart from the tile, filled from it and moved back."""
        return np.asarray(self.promoted & (self.in_lanes | ~self.tile_is_constant))

    @cached_property
    def sizes(self) -> tuple[dict[Axis, Column], ...]:
        """For each number of bands entered, how much of each axis is left below: ``sizes[0]`` is everything."""
        current = {axis: np.full_like(self.lanes, axis.extent) for axis in axes_of(self.anchor)}
        result = [dict(current)]
        for band in range(len(self.bands)):
            current |= {loop.axis: loop.step for loop in self.loops if loop.band == band}
            result.append(dict(current))
        return tuple(result)


@dataclass(frozen=True, eq=False)
class Program:
    """``n`` programs of one sketch.

    Attributes:
        dag: the stages, after the steps that change them.
        nests: in the order in which they run.
        parts: for the partial results of an rfactor: (n,) how many there are, by the axes ``r`` that count them.
    """

    dag: ComputeDAG
    nests: tuple[Nest, ...]
    parts: Mapping[Axis, Column]

    def canonical(self) -> np.ndarray:
        """(n, k) int64: equal rows mean one and the same program.

        Loops of one iteration vanish, and places are counted in the loops that are left.
        """
        columns: list[Column] = []
        for nest in self.nests:
            columns += _canonical_nest(nest)
        return np.stack(columns, axis=1)


def _take(table: np.ndarray, which: Column) -> Column:
    """``table[i, which[i]]`` for every ``i``."""
    result: Column = table[np.arange(len(table)), which]
    return result


def _side_by_side(columns: list[Column], nest: Nest) -> np.ndarray:
    """(n, columns) int64, for a nest without loops too."""
    return np.array(columns, dtype=np.int64).reshape(len(columns), len(nest.lanes)).T


def _canonical_nest(nest: Nest) -> list[Column]:
    number = positions(nest.anchor)
    real = _side_by_side([loop.trip > 1 for loop in nest.loops], nest).astype(bool)
    order = np.argsort(~real, axis=1, kind="stable")
    columns: list[Column] = []
    for what in (
        [np.where(loop.trip > 1, 1 + number[loop.axis], 0) for loop in nest.loops],
        [np.where(loop.trip > 1, loop.trip, 0) for loop in nest.loops],
        [np.where(loop.trip > 1, loop.step, 0) for loop in nest.loops],
        [np.where(loop.trip > 1, loop.unrolled, 0) for loop in nest.loops],
    ):
        columns += list(np.take_along_axis(_side_by_side(what, nest), order, axis=1).T)
    before = np.concatenate([np.zeros((len(real), 1), np.int64), np.cumsum(real, axis=1)], axis=1)

    def place(bands: Column) -> Column:
        starts = np.array([nest.band_start(b) for b in range(len(nest.bands) + 1)])
        return _take(before, starts[bands])

    columns += [_take(before, nest.parallel), nest.lanes, place(nest.epilogue_at)]
    # Which loops the promoted accumulators are around cannot be told from the loops when nothing walks the tile in between.
    inner = np.full_like(nest.lanes, 0 if nest.inner_reduction is None else nest.inner_reduction)
    columns.append(np.where(nest.apart, 1 + place(inner), 0))
    for stage in nest.attached:
        columns += [np.where(stage.at == 0, 0, 1 + place(stage.at)), stage.lanes, stage.parallel]
    columns += [np.where(pack.at == 0, 0, 1 + place(pack.at)) for pack in nest.packed]
    return columns


def fold(steps: tuple[Step, ...], dag: ComputeDAG, rows: np.ndarray) -> Program:
    """The programs of ``rows``.

    Args:
        steps: a finished sketch's steps.
        dag: the computation after the steps that change the set of stages.
        rows: (n, holes) int64, every value below its hole's size.
    """
    return _Fold(steps, dag, rows).program()


class _Fold:
    """The steps of one sketch and one population's columns."""

    def __init__(self, steps: tuple[Step, ...], dag: ComputeDAG, rows: np.ndarray) -> None:
        self.dag = dag
        self.steps = steps
        self.n = len(rows)
        self.columns = {hole.name: rows[:, position] for position, hole in enumerate(holes(steps))}
        self.tensors = {tensor.name: tensor for tensor in dag.tensors}
        self.constant = constant_stages(dag)
        self.partials = {step.partial for step in steps if isinstance(step, Rfactor)}
        self.parts: dict[Axis, Column] = {}

    def program(self) -> Program:
        position = {tensor.name: i for i, tensor in enumerate(self.dag.tensors)}
        reorders = sorted((s for s in self.steps if isinstance(s, Reorder)), key=lambda s: position[s.stage])
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

    def zeros(self) -> Column:
        return np.zeros(self.n, dtype=np.int64)

    def value(self, hole: Hole) -> Column:
        """The choices that a hole's column selects."""
        result: Column = np.asarray(hole.choices, dtype=np.int64)[self.columns[hole.name]]
        return result

    def step(self, kind: type[_S], stage: str) -> _S | None:
        """The one step of this kind on this stage, if there is one."""
        return next((s for s in self.steps if isinstance(s, kind) and s.stage == stage), None)

    def chosen(self, kind: type[Parallel] | type[Vectorize] | type[Unroll], stage: str, default: int) -> Column:
        step = self.step(kind, stage)
        return self.value(step.hole) if step is not None else self.zeros() + default

    def nest(self, reorder: Reorder) -> Nest:
        anchor = self.tensors[reorder.stage]
        follow = next((s for s in self.steps if isinstance(s, Follow) and s.leader == anchor.name), None)
        epilogue = self.tensors[follow.stage] if follow is not None else None
        factor = anchor.reduce_axes[0] if epilogue is not None and epilogue.name in self.partials else None
        loops, bands = self.loops(anchor, reorder, factor)
        unit = [np.all([loop.trip == 1 for loop in loops if loop.band == b], axis=0) for b in range(len(bands))]
        normal = [self.zeros()]
        for band in range(len(bands)):
            normal.append(np.where(unit[band], normal[-1], band + 1))
        normal_at = np.stack(normal, axis=1)

        def normalised(at: Column) -> Column:
            return _take(normal_at, at)

        ended = self.zeros() + len(bands)
        for band in reversed(range(len(bands))):
            ended = np.where(unit[band] | (not bands[band]), ended, band)
        epilogue_at = normalised(np.minimum(self.value(follow.hole), ended)) if follow is not None else self.zeros()
        vectorize = self.step(Vectorize, anchor.name)
        lane_axis = next((a for a in axes_of(anchor) if vectorize is not None and a.name == vectorize.axis), None)
        lanes = self.zeros() + 1
        if lane_axis is not None:
            lanes = np.minimum(self.chosen(Vectorize, anchor.name, 1), loops[-1].trip)
        loops = self.unrolled(loops, bands, lanes, self.chosen(Unroll, anchor.name, 0))
        parallel = self.parallel(anchor.name, [loop.trip for loop in loops])
        prepared = (anchor if epilogue is None else epilogue) in self.constant
        nest = Nest(anchor, loops, bands, factor, epilogue, epilogue_at, ended, lane_axis, lanes, parallel, prepared, (), ())
        packs = (s for s in self.steps if isinstance(s, CacheRead) and s.stage == anchor.name)
        packed = tuple(self.packed(nest, step, normalised) for step in packs)
        return replace(nest, attached=self.attached(nest, normalised), packed=packed)

    def loops(self, anchor: Tensor, reorder: Reorder, factor: Axis | None) -> tuple[tuple[Loop, ...], tuple[bool, ...]]:
        """The split loops of ``anchor`` in their order, and which bands reduce."""
        by_name: dict[str, Loop] = {}
        never = np.zeros(self.n, dtype=bool)
        for split in self.steps:
            if not isinstance(split, Split) or split.stage != anchor.name:
                continue
            axis = next(a for a in axes_of(anchor) if a.name == split.axis)
            table, column = split.hole.table, self.columns[split.hole.name]
            assert table is not None
            spans, trips = table.spans[column], table.trips[column]
            for level, name in enumerate(split.loops):
                reduce = axis.reduce and not (axis is factor and level == 0)
                by_name[name] = Loop(name, axis, 0, reduce, spans[:, level], spans[:, level + 1], trips[:, level], never)
        for axis in anchor.reduce_axes:
            if axis in self.parts:
                # The parts of an rfactor are folded one by one: their number is a column, which no table could tile.
                count, one = self.parts[axis], self.zeros() + 1
                by_name[axis.name] = Loop(axis.name, axis, 0, True, count, one, count, never)
        loops = tuple(replace(by_name[name], band=b) for b, band in enumerate(reorder.bands) for name in band)
        bands = tuple(any(by_name[name].reduce for name in band) for band in reorder.bands)
        return loops, bands

    def unrolled(self, loops: tuple[Loop, ...], bands: tuple[bool, ...], lanes: Column, limit: Column) -> tuple[Loop, ...]:
        """Marks loops, from the innermost outward, while their straight-line code stays within ``limit`` statements.

        The marks stop at the reduction loops around the innermost tile, and at a reduction loop whose last run is short.
        """
        statements = np.ones(self.n, dtype=np.int64)
        going = limit > 0
        last_space = max((band for band, reduces in enumerate(bands) if not reduces), default=0)
        result = list(loops)
        for position in reversed(range(len(loops))):
            loop = loops[position]
            if loop.band < last_space and not (bands[loop.band] and loop.band == last_space - 1):
                break
            vector = (lanes > 1) if position == len(loops) - 1 else np.zeros(self.n, dtype=bool)
            trips = np.where(vector, -(-loop.trip // lanes), loop.trip)
            statements = statements * trips
            fixed = (self.whole(loops, position) | (loop.trip == 1)) if loop.reduce else np.ones(self.n, dtype=bool)
            going = going & (statements <= limit) & (fixed | vector)
            result[position] = replace(loop, unrolled=going & (loop.trip > 1) & ~vector)
        return tuple(result)

    def whole(self, loops: tuple[Loop, ...], position: int) -> Column:
        """(n,) bool: whether a reduction loop always runs its full trip, because every outer step divides its span."""
        loop = loops[position]
        exact = np.ones(self.n, dtype=bool)
        for outer in loops[:position]:
            if outer.axis is loop.axis:
                exact &= outer.trip * outer.step == outer.span
        exact &= loop.trip * loop.step == loop.span
        return exact

    def parallel(self, stage: str, trips: list[Column]) -> Column:
        """How many outermost loops are fused and parallel, not counting a last one of a single iteration."""
        wish = self.chosen(Parallel, stage, 0)
        result = self.zeros()
        for position, trip in enumerate(trips):
            result = np.where((position < wish) & (trip > 1), position + 1, result)
        return result

    def attached(self, nest: Nest, normalised: Callable[[Column], Column]) -> tuple[Attached, ...]:
        """The stages computed in ``nest``, producers first; none further in than one of its consumers."""
        steps = {s.stage: s for s in self.steps if isinstance(s, ComputeAt) and s.anchor == nest.anchor.name}
        members = [t for t in self.dag.computes if t.name in steps]
        forms = regions(self.dag, nest.anchor, nest.epilogue, members)
        places: dict[Tensor, Column] = {}
        result: list[Attached] = []
        for tensor in reversed(members):
            at = self.value(steps[tensor.name].hole)
            for consumer in self.dag.consumers(tensor):
                if consumer in places:
                    at = np.minimum(at, places[consumer])
                elif consumer is nest.epilogue:
                    at = np.minimum(at, nest.epilogue_at)
            # What is prepared has no loops around it.
            at = places[tensor] = self.zeros() if tensor in self.constant else normalised(at)
            result.append(self.region_stage(nest, tensor, forms[tensor], at))
        return tuple(reversed(result))

    def region_stage(self, nest: Nest, tensor: Tensor, region: Region, at: Column) -> Attached:
        lengths: list[Column] = []
        for extent, box in zip(tensor.shape, region, strict=True):
            per_band = [self.zeros() + extent]
            per_band += [self.zeros() + (extent if box is None else box.length(sizes, extent)) for sizes in nest.sizes[1:]]
            lengths.append(_take(np.stack(per_band, axis=1), at))
        vectorize = self.step(Vectorize, tensor.name)
        lane_axis = next((a for a in axes_of(tensor) if vectorize is not None and a.name == vectorize.axis), None)
        lanes = self.zeros() + 1
        if lane_axis is not None:
            width = self.zeros() + lane_axis.extent if lane_axis.reduce else lengths[positions(tensor)[lane_axis]]
            lanes = np.minimum(self.chosen(Vectorize, tensor.name, 1), width)
        number = positions(tensor)
        others = [lengths[number[axis]] for axis in region_loops(tensor, lane_axis)]
        parallel = np.where(at == 0, self.parallel(tensor.name, others), 0)
        return Attached(tensor, region, at, tuple(lengths), lane_axis, lanes, parallel, tensor in self.constant)

    def packed(self, nest: Nest, step: CacheRead, normalised: Callable[[Column], Column]) -> Packed:
        tensor = self.tensors[step.tensor]
        copy = _copy(nest.anchor, tensor, step.packed)
        assert copy.body is not None
        prepared = follows_from_constants(self.dag, copy.body)
        return Packed(tensor, copy, self.zeros() if prepared else normalised(self.value(step.hole)), prepared)


@lru_cache(maxsize=1024)
def _copy(anchor: Tensor, tensor: Tensor, name: str) -> Tensor:
    """What ``anchor`` reads of ``tensor``, over the axes that the read depends on; a stage's element is computed there."""
    assert anchor.body is not None
    (read,) = (read for read in reads(anchor.body) if read.tensor is tensor)
    used = free_vars(read)
    axes = tuple(axis for axis in axes_of(anchor) if axis in used)
    element: Expr = read
    if tensor.body is not None:
        element = substitute(tensor.body, dict(zip(tensor.axes, read.indices, strict=True)))
    return Tensor(name, tuple(axis.extent for axis in axes), tensor.dtype, axes, element)
