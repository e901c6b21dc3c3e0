"""Primitives that say how loops run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import BINDINGS
from ansorlite.schedule.primitives.loops import one_stage
from ansorlite.schedule.primitives.step import Step
from ansorlite.schedule.refs import LoopRef, StageRef
from ansorlite.schedule.samples import Value, least
from ansorlite.schedule.structure import Structure

#: More statements than any program has.
_NO_LIMIT: Final = 1 << 30


@dataclass(frozen=True)
class Parallel(Step):
    """The first ``depth`` of these loops, the outermost ones of their stage, are fused and shared among all threads::

        for i: for j: ...      ->      parallel for i_j: ...       # parallel((i, j), depth=2)

    With a depth of 0 none is; a loop of one iteration counts like any other.
    """

    method: ClassVar = "parallel"
    loops: tuple[LoopRef, ...]
    depth: Value | None = None

    def apply(self, structure: Structure) -> Structure:
        loops = [_annotated(structure, loop, "parallel") for loop in self.loops]
        if not loops:
            raise ScheduleError("parallel was given no loops; name the outermost ones of a stage")
        stage = one_stage(loops, "parallel")
        for loop in loops:
            if _reduces(structure, loop):
                raise ScheduleError(
                    f"loop {loop} cannot be parallel: its iterations add to the same elements; "
                    f"rfactor it first, and make the loop over the parts parallel"
                )
            _only(structure, loop, "parallel")
        depth = len(loops) if self.depth is None else self.depth
        if least(depth) < 0:
            raise ScheduleError(f"of the loops of stage {stage} {depth} are to be parallel; no fewer than 0 can be")
        return structure.with_stage(stage, parallel=(tuple(loop.name for loop in loops), depth))


@dataclass(frozen=True)
class Vectorize(Step):
    """The innermost loop of a stage runs in vectors of ``lanes`` elements; with 1 lane it is scalar::

        for j in 32: C[j] = ...      ->      for j in 32 by 8: C[j : j + 8] = ...       # vectorize(j, lanes=8)

    A reduction that is vectorised adds up in lanes of partial results.
    """

    method: ClassVar = "vectorize"
    loop: LoopRef
    lanes: Value

    def apply(self, structure: Structure) -> Structure:
        loop = _annotated(structure, self.loop, "vectorize")
        if least(self.lanes) < 1:
            raise ScheduleError(f"loop {loop} is to have {self.lanes} lanes; a vector has at least one")
        _only(structure, loop, "vectorized")
        return structure.with_stage(loop.stage, vector=(loop.name, self.lanes))


@dataclass(frozen=True)
class Unroll(Step):
    """The loops become straight-line code, from the innermost outward, while that has at most ``max_steps`` vector statements::

        for i in 2: for j in 8 by 8: ...      ->      ...; ...       # unroll((i,), max_steps=16)

    A reduction whose last run is short stays a loop. (Ansor's ``auto_unroll_max_step``.)
    """

    method: ClassVar = "unroll"
    loops: tuple[LoopRef, ...]
    max_steps: Value = _NO_LIMIT

    def apply(self, structure: Structure) -> Structure:
        loops = [_annotated(structure, loop, "unroll") for loop in self.loops]
        if not loops:
            raise ScheduleError("unroll was given no loops; name those that are to be straight-line code")
        stage = one_stage(loops, "unroll")
        for loop in loops:
            _only(structure, loop, "unrolled")
        return structure.with_stage(stage, unrolled=(tuple(loop.name for loop in loops), self.max_steps))


@dataclass(frozen=True)
class Bind(Step):
    """The iterations of a loop are bound to what a GPU has: blocks, virtual threads, warps, lanes, threads::

        for i in 64: C[i] = ...      ->      thread i in 64: C[i] = ...       # bind(i, "thread")

    Its iterations must be independent, and as many in every run. Neighbouring loops that are bound to one thing are fused. A
    machine that has no such thing runs them one after another.
    """

    method: ClassVar = "bind"
    positional: ClassVar = 2
    loop: LoopRef
    to: str

    def apply(self, structure: Structure) -> Structure:
        loop = _annotated(structure, self.loop, "bind")
        known = {kind.value: kind for kind in BINDINGS}
        if self.to not in known:
            raise ScheduleError(f"loop {loop} is to be bound to {self.to!r}; there are {', '.join(known)}")
        if _reduces(structure, loop):
            raise ScheduleError(
                f"loop {loop} cannot be bound to {self.to}: its iterations add to the same elements; "
                f"rfactor it first, and bind the loop over the parts"
            )
        said = structure.loops(loop.stage)
        if said.boxed:
            raise ScheduleError(f"stage {loop.stage} is computed inside of another one's loops: bind those, not {loop}")
        _only(structure, loop, "bound")
        others = tuple((name, kind) for name, kind in said.bound if name != loop.name)
        return structure.with_stage(loop.stage, bound=(*others, (loop.name, known[self.to])))


@dataclass(frozen=True)
class Pipeline(Step):
    """What the threads of a block share is copied ``stages - 1`` iterations of a loop ahead, into a ring of as many slots::

        for k in 16: { A_s = A[k]; C += f(A_s) }
        ->      A_s[0..2] = A[0..2]; for k in 16: { A_s[(k + 3) % 4] = A[k + 3]; C += f(A_s[k % 4]) }      # pipeline(k, 4)

    The copies are those that are made in the loop, of scope "shared", from what is there before it. The loop is inside of those
    that are bound to blocks, and outside of those bound to threads. A GPU copies while it computes; a machine that does not runs
    the same statements in their order. There are no more slots than iterations.
    """

    method: ClassVar = "pipeline"
    positional: ClassVar = 2
    loop: LoopRef
    stages: Value

    def apply(self, structure: Structure) -> Structure:
        loop = _annotated(structure, self.loop, "pipeline")
        if least(self.stages) < 1:
            raise ScheduleError(f"loop {loop} is to be pipelined in {self.stages} stages; a ring has at least one slot")
        said = structure.loops(loop.stage)
        if said.boxed:
            raise ScheduleError(f"stage {loop.stage} is computed inside of another one's loops: pipeline those, not {loop}")
        if said.pipelined is not None and said.pipelined[0] != loop.name:
            raise ScheduleError(f"loop {said.pipelined[0]} of stage {loop.stage} is pipelined already; a stage has one such loop")
        _only(structure, loop, "pipelined")
        return structure.with_stage(loop.stage, pipelined=(loop.name, self.stages))


@dataclass(frozen=True)
class Stream(Step):
    """What the stage stores goes past the caches (non-temporal stores), if ``on`` is 1 and it stores whole vectors in long runs::

    D[i] = ...      ->      D[i] = ... # streamed
    """

    method: ClassVar = "stream"
    stage: StageRef
    on: Value

    def apply(self, structure: Structure) -> Structure:
        structure.computed(self.stage.name)
        return structure.with_stage(self.stage.name, streamed=self.on)


def _annotated(structure: Structure, loop: LoopRef, what: str) -> LoopRef:
    if structure.loops(loop.stage).follows:
        raise ScheduleError(f"stage {loop.stage} runs in the loops of another stage, which it follows: {what} loops of that one")
    return structure.live(loop)


def _only(structure: Structure, loop: LoopRef, what: str) -> None:
    """A loop runs in one way alone.

    Raises:
        ScheduleError: something else than ``what`` was said of it.
    """
    said = structure.loops(loop.stage)
    ways = {
        "parallel": said.parallel[0] if said.parallel is not None else (),
        "vectorized": said.vector[:1] if said.vector is not None else (),
        "unrolled": said.unrolled[0] if said.unrolled is not None else (),
        "bound": tuple(name for name, _ in said.bound),
        "pipelined": said.pipelined[:1] if said.pipelined is not None else (),
    }
    for way, names in ways.items():
        if way != what and loop.name in names and not {"bound", "pipelined"}.isdisjoint((way, what)):
            raise ScheduleError(f"loop {loop} cannot be both {way} and {what}; split it in two")


def _reduces(structure: Structure, loop: LoopRef) -> bool:
    """Whether the iterations of a loop add to the same elements; those over the parts of a sum do not."""
    axis = structure.axis(loop)
    if structure.partials.get(loop.stage) == axis.name:
        outermost = next((split.parts[0] for split in structure.loops(loop.stage).splits if split.loop == axis.name), axis.name)
        return loop.name != outermost
    return axis.reduce
