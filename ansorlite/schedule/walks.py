"""The numbers of the loops of one stage: how much each walks, in which steps, and what becomes of last iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ansorlite.analysis.access import axes_of
from ansorlite.columns.arithmetic import both, ceil, either, equal, every, minimum, product
from ansorlite.columns.tape import Column, Number
from ansorlite.errors import ScheduleError
from ansorlite.schedule.conditions import Conditions
from ansorlite.schedule.fusing import counts, taken
from ansorlite.schedule.samples import Choose, Hole, Trip, Value, evaluate
from ansorlite.schedule.structure import Splitting, StageLoops, Tail
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor


@dataclass(frozen=True)
class Walk:
    """The numbers of one loop of a stage.

    Attributes:
        even: whether its step is known to divide its span, whatever is chosen.
        guard: of a loop that is cut, whether what reaches beyond the end runs under a condition, and of what kind that is.
    """

    axis: Axis
    span: Number
    step: Number
    trip: Number
    reduce: bool
    cut: bool
    even: bool = True
    guard: Tail | None = None

    @property
    def numbers(self) -> tuple[bool, Number, Number, Number]:
        """As a loop has them."""
        return self.reduce, self.span, self.step, self.trip


class Walks:
    """Makes the numbers of the loops of stages."""

    def __init__(self, choose: Choose, parts: Mapping[Axis, Number], conditions: Conditions) -> None:
        """
        Args:
            choose: what is chosen for holes.
            parts: extents that are known only now, of the axes that count partial results.
            conditions: what splits have to fulfil.
        """
        self.choose = choose
        self.parts = parts
        self.conditions = conditions

    def of(
        self, anchor: Tensor, said: StageLoops, factor: Axis | None, tiled: bool, extents: Mapping[Axis, Number]
    ) -> dict[str, Walk]:
        """The numbers of the loops of a stage, by name; ``extents``: of the axes of its box."""
        found: dict[str, Walk] = {}
        by_name = {axis.name: axis for axis in axes_of(anchor)}
        outside = _adds_outside(anchor, said)
        for name in said.axes:
            axis = by_name[name]
            extent = extents[axis]
            cut = axis.reduce or (not tiled and name in outside)
            found[name] = Walk(axis, extent, 1, extent, axis.reduce, cut)
        divided = frozenset(split.loop for split in said.splits)
        for split in said.splits:
            whole = found[split.loop]
            if split.fused:
                fused = [found[name] for name in split.fused]
                parts = self.split_fused(anchor.name, fused, split.fused.index(split.loop), split)
            else:
                parts = self.split(anchor.name, whole, split, divided)
            for level, (name, part) in enumerate(zip(split.parts, parts, strict=True)):
                makes_parts = whole.axis is factor and level == 0 and split.loop == whole.axis.name
                found[name] = replace(part, reduce=part.reduce and not makes_parts)
        return {name: found[name] for name in said.loops}

    def split_fused(self, stage: str, walks: Sequence[Walk], number: int, split: Splitting) -> list[Walk]:
        """The loops that a part of a fused loop becomes where that is split: ``walks[number]`` of all of its parts."""
        factors = [None if factor is None else evaluate(factor, self.choose) for factor in split.factors]
        trips = [walk.trip for walk in walks]
        levels, even = counts(product(trips), factors)
        shares = []
        for count in levels:
            share, whole = taken(count, trips)
            even = both(even, whole)
            shares.append(share[number])
        self.conditions.require(
            even,
            f"a fused loop of stage {stage}, of {_told(trips)} iterations from the outermost part in, is split by the factors "
            f"{_told(factors)}: its loops walk whole runs of the innermost parts; choose factors that divide these in turn",
        )
        walk = walks[number]
        spans = [minimum(walk.step * share, walk.span) for share in shares]
        return [replace(walk, span=span, step=step, trip=ceil(span / step)) for span, step in pairwise(spans)]

    def split(self, stage: str, whole: Walk, split: Splitting, divided: frozenset[str]) -> list[Walk]:
        """The loops that a loop becomes; ``divided`` are all those that are split."""
        if split.tail is Tail.SHIFT and whole.cut:
            raise ScheduleError(
                f"loop {split.loop} of stage {stage} adds up what its last iterations cover: shifted inwards, they would add "
                f"twice; cut them"
            )
        guard = split.tail if split.tail in (Tail.GUARD, Tail.MASK) else None if split.tail is Tail.CUT else whole.guard
        cut = whole.cut or split.tail is Tail.CUT or guard is not None
        hole, even = _tile(split.factors), False
        if hole is not None and hole.table is not None and equal(whole.span, hole.table.extent) == 1 and whole.step == 1:
            table = hole.table
            spans = [self.choose(hole, table.spans[:, level]) for level in range(table.parts + 1)]
            trips = [self.choose(hole, table.trips[:, level]) for level in range(table.parts)]
            # Of an axis that is split by these tiles alone nothing is cut.
            alone = split.loop == whole.axis.name and divided.isdisjoint(split.parts)
            cut, even = cut and (whole.reduce or not table.perfect or not alone), table.perfect
        else:
            spans = self.chain(stage, whole, split)
            trips = [ceil(spans[level] / spans[level + 1]) for level in range(len(split.factors))]
        if cut and not whole.cut:
            even_steps = every(equal(trip * step, span) for trip, (span, step) in zip(trips, pairwise(spans), strict=True))
            self.conditions.require(
                either(equal(whole.step, 1), even_steps),
                f"the last step of loop {split.loop} of stage {stage} is to end early, but the loops inside of it are shifted: "
                f"give tail= to the first split of {whole.axis.name}, too",
            )
        return [
            replace(whole, span=spans[level], step=spans[level + 1], trip=trips[level], cut=cut, even=even, guard=guard)
            for level in range(len(split.factors))
        ]

    def chain(self, stage: str, whole: Walk, split: Splitting) -> list[Number]:
        """The spans of the loops that a loop becomes, from the outermost in, and the step of the innermost."""
        wanted = [None if factor is None else evaluate(factor, self.choose) for factor in split.factors]
        if all(factor is not None for factor in wanted):
            covered = product(factor for factor in wanted if factor is not None) * whole.step
            self.conditions.require(
                covered >= whole.span,
                f"loop {split.loop} of stage {stage} has {_told([whole.trip])} iterations, of which the factors "
                f"{_told(wanted)} cover fewer; make one of them None, which walks what is left",
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


def _tile(factors: Sequence[Value | None]) -> Hole | None:
    """The hole whose tile the factors are, level by level and whole."""
    trips = [factor for factor in factors if isinstance(factor, Trip)]
    if not trips or len(trips) < len(factors) or any(trip.hole is not trips[0].hole for trip in trips):
        return None
    table = trips[0].hole.table
    levels = [trip.level for trip in trips]
    return trips[0].hole if table is not None and levels == list(range(table.parts)) else None


def _told(numbers: Sequence[Number | None]) -> str:
    """For a message; what is sampled has no number."""
    return ", ".join("a sample" if isinstance(number, Column) else str(number) for number in numbers)


def _adds_outside(anchor: Tensor, said: StageLoops) -> frozenset[str]:
    """The space axes of which a part is walked inside of a loop that adds up, or may be after accumulators have started: a
    shifted tile of these would be added to twice.
    """
    parents = {part: split.loop for split in said.splits for part in split.parts}

    def axis(name: str) -> str:
        while name in parents:
            name = parents[name]
        return name

    reduce = {each.name for each in anchor.reduce_axes}
    if said.starts is not None:
        # Wherever that is, so that all choices of a place have the same loops.
        return frozenset(said.axes) - reduce
    first = next((position for position, name in enumerate(said.loops) if axis(name) in reduce), len(said.loops))
    return frozenset(axis(name) for name in said.loops[first:] if axis(name) not in reduce)


def innermost(said: StageLoops) -> frozenset[str]:
    """The loops whose iterations are one element apart: the innermost level of each axis."""
    last = {split.loop: split.parts[-1] for split in said.splits}

    def level(name: str) -> str:
        return level(last[name]) if name in last else name

    return frozenset(map(level, said.axes))


def chain(said: StageLoops) -> list[str]:
    """All loops, those of each axis from its outermost level in, whatever the order that they stand in."""
    levels = list(said.axes)
    for split in said.splits:
        place = levels.index(split.loop)
        levels[place : place + 1] = split.parts
    return levels


def mixed_axes(said: StageLoops, walks: Mapping[str, Walk]) -> frozenset[Axis]:
    """The axes of which an inner level is walked outside of an outer one."""
    levels = chain(said)
    outward: dict[Axis, int] = {}
    found = set()
    for name in said.loops:
        axis, level = walks[name].axis, levels.index(name)
        if level < outward.setdefault(axis, level):
            found.add(axis)
        outward[axis] = level
    return frozenset(found)
