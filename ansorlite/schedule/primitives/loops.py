"""Primitives that shape the loops of one stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ansorlite.errors import ScheduleError
from ansorlite.schedule.primitives.step import Results, Step
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Value, least
from ansorlite.schedule.structure import Copied, Splitting, StageLoops, Structure, Tail, places


@dataclass(frozen=True)
class Split(Step):
    """One loop becomes several, one inside of the other; ``factors`` are their iterations, from the outermost in::

        for i in 100: ...      ->      for i0 in 3: for i1 in 48: ...       # split(i, [None, 48])

    Of the last iteration of ``i0``, which would reach beyond the end, ``tail`` says what becomes of it.
    """

    method: ClassVar = "split"
    positional: ClassVar = 2
    several: ClassVar = True
    loop: LoopRef
    factors: tuple[Value | None, ...]
    tail: str | None = None

    def apply(self, structure: Structure) -> Structure:
        loop = shapeable(structure, self.loop, "split")
        stage = structure.loops(loop.stage)
        if not self.factors:
            raise ScheduleError(f"loop {loop} cannot be split into no loops; give the iterations of each, for example [None, 8]")
        if sum(factor is None for factor in self.factors) > 1:
            raise ScheduleError(f"loop {loop} is split by {list(self.factors)}: only one factor can be what the others leave")
        if any(factor is not None and least(factor) < 1 for factor in self.factors):
            raise ScheduleError(f"loop {loop} is split by {list(self.factors)}: a loop has at least one iteration")
        tail = None if self.tail is None else _tail(loop, self.tail)
        parts = _names(stage, loop.name, len(self.factors))
        place = stage.loops.index(loop.name)
        loops = (*stage.loops[:place], *parts, *stage.loops[place + 1 :])
        splits = (*stage.splits, Splitting(loop.name, parts, self.factors, tail))
        return structure.with_stage(loop.stage, loops=loops, splits=splits)

    def results(self, after: Structure) -> Results:
        parts = after.loops(self.loop.stage).splits[-1].parts
        return tuple(LoopRef(self.loop.stage, part) for part in parts)


@dataclass(frozen=True)
class Reorder(Step):
    """The named loops take, in this order, the places that they have among all loops of the stage::

    for i: for j: for k: ...      ->      for k: for j: for i: ...       # reorder(k, i)
    """

    method: ClassVar = "reorder"
    loops: tuple[LoopRef, ...]

    def apply(self, structure: Structure) -> Structure:
        if not self.loops:
            raise ScheduleError("reorder was given no loops; name those that change their places, from the outermost in")
        loops = [shapeable(structure, loop, "reorder") for loop in self.loops]
        stage = one_stage(loops, "reorder")
        names = [loop.name for loop in loops]
        if len(set(names)) < len(names):
            raise ScheduleError(f"loops {', '.join(names)} of stage {stage} are to be reordered: one is named twice")
        fresh = iter(names)
        order = tuple(next(fresh) if name in names else name for name in structure.loops(stage).loops)
        return structure.with_stage(stage, loops=order)


def one_stage(loops: list[LoopRef], what: str) -> str:
    """The one stage that all loops are of.

    Raises:
        ScheduleError: they are of several.
    """
    stages = {loop.stage for loop in loops}
    if len(stages) > 1:
        raise ScheduleError(f"{what} takes loops of one stage; {', '.join(map(str, loops))} are of {len(stages)}")
    return loops[0].stage


def shapeable(structure: Structure, loop: LoopRef, what: str) -> LoopRef:
    """``loop``, if the loops of its stage may be changed.

    Raises:
        ScheduleError: it is gone, or its stage runs in loops of another, or something was said of the loop that would be lost.
    """
    structure.live(loop)
    stage = structure.loops(loop.stage)
    if stage.follows:
        raise ScheduleError(f"stage {loop.stage} runs in the loops of another stage, which it follows: {what} loops of that one")
    if what == "split":
        _unused(structure, stage, loop)
    return loop


def _unused(structure: Structure, stage: StageLoops, loop: LoopRef) -> None:
    """Nothing may have been said of a loop that goes."""
    said = {
        "parallel": stage.parallel is not None and loop.name in stage.parallel[0],
        "vectorize": stage.vector is not None and loop.name == stage.vector[0],
        "bind": loop.name in dict(stage.bound),
        "prefetch": any(each.loop == loop.name for each in stage.prefetched),
        "unroll": stage.unrolled is not None and loop.name in stage.unrolled[0],
    }
    for other, of in structure.stages.items():
        said[f"compute_at of {other}"] = loop in places(of.at)
        said[f"decompose_reduction of {other}"] = of.starts is not None and loop in places(of.starts.at)
        said |= {f"storage_align of {c.name}": True for c in of.copies if other == loop.stage and loop.name in _aligned(c)}
        said |= {f"cache_read of {copy.tensor}": loop in places(copy.at) for copy in of.copies}
    for what, here in said.items():
        if here:
            raise ScheduleError(f"loop {loop} cannot be split after {what}, which names it; split it before")


def _aligned(copy: Copied) -> list[str]:
    return [each.along for each in copy.aligned]


def _tail(loop: LoopRef, tail: str) -> Tail:
    try:
        return Tail(tail)
    except ValueError:
        known = ", ".join(each.value for each in Tail)
        raise ScheduleError(f"loop {loop} is split with tail={tail!r}; it is one of {known}") from None


def _names(stage: StageLoops, loop: str, count: int) -> tuple[str, ...]:
    """``i0 i1 ...`` of loop ``i``, or others where a loop of the stage has such a name or had it."""
    taken = {*stage.axes, *(part for split in stage.splits for part in split.parts)}
    base = loop
    while any(f"{base}{level}" in taken for level in range(count)):
        base += "_"
    return tuple(f"{base}{level}" for level in range(count))
