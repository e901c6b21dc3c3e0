"""Primitives that shape the loops of one stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ansorlite.errors import ScheduleError
from ansorlite.schedule.primitives.step import Results, Step
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Value, least
from ansorlite.schedule.structure import Copied, Fused, Splitting, StageLoops, Structure, Tail, places


@dataclass(frozen=True)
class Split(Step):
    """One loop becomes several, one inside of the other; ``factors`` are their iterations, from the outermost in::

        for i in 100: ...      ->      for i0 in 3: for i1 in 48: ...       # split(i, [None, 48])

    Of the last iteration of ``i0``, which would reach beyond the end, ``tail`` says what becomes of it: it is shifted inwards
    (``"shift"``), cut short (``"cut"``), or runs whole, and what is beyond the end is not done (``"guard"``; where that is some
    lanes of a vector, ``"mask"``)::

        for i0 in 3: for i1 in 48: if i0 * 48 + i1 < 100: ...               # split(i, [None, 48], tail="guard")

    By default it is shifted where that adds nothing twice, else cut. A fused loop is
    split into loops that walk whole runs of the innermost ones: its factors divide.
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
        walked = stage.parts(loop.name)
        if walked == (loop.name,):
            splits = (*stage.splits, Splitting(loop.name, parts, self.factors, tail))
            return structure.with_stage(loop.stage, loops=loops, splits=splits)
        if tail is not None:
            raise ScheduleError(f"loop {loop} is fused: its iterations divide evenly among its parts; leave out tail=")
        made = {part: tuple(f"{part}.{each}" for each in walked) for part in parts}
        splits = tuple(
            Splitting(each, tuple(of[number] for of in made.values()), self.factors, None, walked)
            for number, each in enumerate(walked)
        )
        fused = tuple(Fused(part, (loop.name,), of) for part, of in made.items())
        return structure.with_stage(loop.stage, loops=loops, splits=(*stage.splits, *splits), fused=(*stage.fused, *fused))

    def results(self, after: Structure) -> Results:
        stage = after.loops(self.loop.stage)
        walked = stage.parts(self.loop.name) != (self.loop.name,)
        parts = [each.name for each in stage.fused[-len(self.factors) :]] if walked else stage.splits[-1].parts
        return tuple(LoopRef(self.loop.stage, part) for part in parts)


@dataclass(frozen=True)
class Fuse(Step):
    """Neighbouring loops, named from the outermost in, become one that walks the iterations of all::

        for i in 6: for j in 8: C[i, j] = ...      ->      for i_j in 48: C[i_j // 8, i_j % 8] = ...       # fuse(i, j)

    It can be split again, into loops that walk whole runs of the innermost ones.
    """

    method: ClassVar = "fuse"
    loops: tuple[LoopRef, ...]

    def apply(self, structure: Structure) -> Structure:
        if len(self.loops) < 2:
            raise ScheduleError("fuse takes two loops or more; name them from the outermost in")
        loops = [shapeable(structure, loop, "fuse") for loop in self.loops]
        stage = one_stage(loops, "fuse")
        said, names = structure.loops(stage), tuple(loop.name for loop in loops)
        place = said.loops.index(names[0])
        if said.loops[place : place + len(names)] != names:
            raise ScheduleError(
                f"loops {', '.join(names)} of stage {stage} are to be fused, but its loops are {', '.join(said.loops)}: only "
                f"neighbours are, named from the outermost in; reorder them first"
            )
        axes = [axis for loop in loops for axis in structure.axes(loop)]
        if len({axis.reduce for axis in axes}) > 1:
            raise ScheduleError(
                f"loops {', '.join(names)} of stage {stage} cannot be fused: {', '.join(a.name for a in axes if a.reduce)} adds "
                f"up, and the others do not; fuse loops of one kind"
            )
        parts = structure.partials.get(stage)
        if any(axis.name == parts for axis in axes):
            raise ScheduleError(f"loops of {parts} of stage {stage} make the partial results of an rfactor: they cannot be fused")
        taken, name = _taken(said), "_".join(names)
        while name in taken:
            name += "_"
        fused = Fused(name, names, tuple(part for each in names for part in said.parts(each)))
        order = (*said.loops[:place], name, *said.loops[place + len(names) :])
        return structure.with_stage(stage, loops=order, fused=(*said.fused, fused))

    def results(self, after: Structure) -> Results:
        stage = self.loops[0].stage
        return (LoopRef(stage, after.loops(stage).fused[-1].name),)


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
    if what in ("split", "fuse"):
        _unused(structure, stage, loop, what)
    return loop


def _unused(structure: Structure, stage: StageLoops, loop: LoopRef, goes: str) -> None:
    """Nothing may have been said of a loop that goes."""
    said = {
        "parallel": stage.parallel is not None and loop.name in stage.parallel[0],
        "vectorize": stage.vector is not None and loop.name == stage.vector[0],
        "bind": loop.name in dict(stage.bound),
        "prefetch": any(each.loop == loop.name for each in stage.prefetched),
        "unroll": stage.unrolled is not None and loop.name in stage.unrolled[0],
        "pipeline": stage.pipelined is not None and loop.name == stage.pipelined[0],
    }
    for other, of in structure.stages.items():
        said[f"compute_at of {other}"] = loop in places(of.at)
        said[f"decompose_reduction of {other}"] = of.starts is not None and loop in places(of.starts.at)
        said |= {f"storage_align of {c.name}": True for c in of.copies if other == loop.stage and loop.name in _aligned(c)}
        said |= {f"cache_read of {copy.tensor}": loop in places(copy.at) for copy in of.copies}
    for what, here in said.items():
        if here:
            gone = {"split": "split", "fuse": "fused"}[goes]
            raise ScheduleError(f"loop {loop} cannot be {gone} after {what}, which names it; {goes} it before")


def _aligned(copy: Copied) -> list[str]:
    return [each.along for each in copy.aligned]


def _tail(loop: LoopRef, tail: str) -> Tail:
    try:
        return Tail(tail)
    except ValueError:
        known = ", ".join(each.value for each in Tail)
        raise ScheduleError(f"loop {loop} is split with tail={tail!r}; it is one of {known}") from None


def _taken(stage: StageLoops) -> frozenset[str]:
    """All names that loops of a stage have or had."""
    made = (part for split in stage.splits for part in split.parts)
    return frozenset((*stage.axes, *made, *(fused.name for fused in stage.fused)))


def _names(stage: StageLoops, loop: str, count: int) -> tuple[str, ...]:
    """``i0 i1 ...`` of loop ``i``, or others where a loop of the stage has such a name or had it."""
    taken = _taken(stage)
    base = loop
    while any(f"{base}{level}" in taken for level in range(count)):
        base += "_"
    return tuple(f"{base}{level}" for level in range(count))
