"""The structure of a schedule: everything about it that no choice changes.

What the primitives (``primitives/``) work on is the computation after the rewrites so far, and for each of its stages a list
of loops, outermost first, with what was said about them. Numbers in it may be symbols. ``fold.py`` makes the numbers of one
program, or of a population, from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from ansorlite.analysis.access import axes_of
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import LoopKind, Scope
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Hole, Value
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor


@dataclass(frozen=True)
class Sampled:
    """One of several places: at the root (``None``) or inside of a loop; all of them loops of one stage."""

    hole: Hole
    places: tuple[LoopRef | None, ...]


#: Where a stage is computed: at the root, or inside of a loop of another stage.
Location: TypeAlias = LoopRef | Sampled | None


def places(location: Location) -> tuple[LoopRef | None, ...]:
    """All places that a location may be."""
    return location.places if isinstance(location, Sampled) else (location,)


class Tail(Enum):
    """What becomes of the last iteration of a loop whose step does not divide its span.

    It is shifted inwards (and computes elements again), cut short, or runs whole under a condition: each of its iterations
    (``GUARD``), or each lane of its vectors (``MASK``), that reaches beyond the end does nothing.
    """

    SHIFT = "shift"
    CUT = "cut"
    GUARD = "guard"
    MASK = "mask"


@dataclass(frozen=True)
class Splitting:
    """A loop that became several.

    Attributes:
        loop: the loop that is gone.
        parts: the loops that took its place, outermost first.
        factors: their iterations; of one at most ``None``, which walks what is left.
        tail: what becomes of last iterations; ``None``: whatever is right.
        fused: where it is a part of a fused loop that was split: all parts of that, whose iterations ``factors`` count together.
    """

    loop: str
    parts: tuple[str, ...]
    factors: tuple[Value | None, ...]
    tail: Tail | None
    fused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fused:
    """A loop that walks the iterations of several, those of the last one fastest.

    Attributes:
        loops: that it took the place of: those that were fused, or the fused loop that was split.
        parts: the loops over one axis each whose iterations it walks, the outermost first.
    """

    name: str
    loops: tuple[str, ...]
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Alignment:
    """Neighbours along a dimension of a buffer are a multiple of ``factor`` elements apart, plus ``offset``.

    Attributes:
        along: the axis, or of a copy the loop, of the dimension.
    """

    along: str
    factor: Value
    offset: Value


@dataclass(frozen=True)
class Copied:
    """What a stage reads of a tensor, laid out in the order of use.

    Attributes:
        tensor: what is read.
        name: of the copy.
        at: where the copy is made.
        computed: whether the tensor is a stage that has no other place: its elements are computed into the copy.
        aligned: dimensions whose strides are padded.
        shared: whether all threads of a block see it.
    """

    tensor: str
    name: str
    at: Location
    computed: bool
    aligned: tuple[Alignment, ...] = ()
    shared: bool = False


@dataclass(frozen=True)
class Started:
    """Where the accumulators of a reduction get their first value: inside of a loop, or before all loops (``None``)."""

    at: Location


@dataclass(frozen=True)
class Ahead:
    """What a stage reads of a tensor is asked for ``distance`` iterations of ``loop`` before it is read."""

    tensor: str
    loop: str
    distance: Value


@dataclass(frozen=True)
class StageLoops:
    """What a schedule says of one stage.

    Attributes:
        axes: the loops that it began with: an axis each.
        loops: those that it has now, outermost first.
        splits: in the order in which they were made; all of loops over one axis.
        fused: the loops that walk the iterations of several, those that are gone with them.
        boxed: whether it is computed region by region, in loops over its box, at a place in the loops of another stage.
        at: that place; the root if it is none.
        follows: whether it is computed in the very loops of the stage that ``at`` is a loop of, after that: as its epilogue.
        parallel: the outermost loops that threads share, and how many of them.
        vector: the vectorised loop, and its lanes.
        bound: loops that are bound to what a GPU has, each with that.
        unrolled: the loops that are unrolled, from the innermost outward, and the most vector statements of straight-line code.
        streamed: whether what it stores goes past the caches.
        scope: the memory that its elements are in until another stage has copied them; ``None``: where they fit.
        copies: the copies that it reads instead of tensors.
        starts: where its accumulators start; ``None``: right before the first loop that adds up.
        aligned: dimensions of its buffer whose strides are padded.
        shared: whether all threads of a block see its buffer.
        prefetched: what it reads that is asked for ahead.
        unit: the matrix unit that multiplies, by name.
        swizzled: how many neighbouring chunks of its buffer change places from row to row; 1: none.
        pipelined: the loop whose copies are made ahead, and the slots of their rings.
    """

    axes: tuple[str, ...]
    loops: tuple[str, ...]
    splits: tuple[Splitting, ...] = ()
    fused: tuple[Fused, ...] = ()
    boxed: bool = False
    at: Location = None
    follows: bool = False
    parallel: tuple[tuple[str, ...], Value] | None = None
    vector: tuple[str, Value] | None = None
    bound: tuple[tuple[str, LoopKind], ...] = ()
    unrolled: tuple[tuple[str, ...], Value] | None = None
    streamed: Value = 0
    copies: tuple[Copied, ...] = ()
    starts: Started | None = None
    scope: Scope | None = None
    aligned: tuple[Alignment, ...] = ()
    shared: bool = False
    prefetched: tuple[Ahead, ...] = ()
    unit: str | None = None
    swizzled: Value = 1
    pipelined: tuple[str, Value] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing was said of it yet, so that its computation may still be rewritten."""
        return self == StageLoops(self.axes, self.axes)

    @property
    def is_shaped(self) -> bool:
        """Whether its loops are others than those over its axes."""
        own = (self.splits, self.unrolled, self.bound, self.copies, self.starts, self.prefetched, self.unit, self.pipelined)
        return self.loops != self.axes or any(own)

    def parts(self, loop: str) -> tuple[str, ...]:
        """The loops over one axis each whose iterations a loop walks: itself, unless it is fused."""
        return next((fused.parts for fused in self.fused if fused.name == loop), (loop,))


@dataclass(frozen=True, eq=False)
class Structure:
    """A schedule in the making.

    Attributes:
        dag: the computation after the rewrites so far.
        stages: what was said of stages; those that nothing was said of have their loops as written.
        partials: the stages of partial results (``rfactor``), and the axis of each whose outermost loop makes the parts.
    """

    dag: ComputeDAG
    stages: Mapping[str, StageLoops] = field(default_factory=dict)
    partials: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        """All tensors by name."""
        return {tensor.name: tensor for tensor in self.dag.tensors}

    def tensor(self, name: str) -> Tensor:
        """
        Raises:
            ScheduleError: there is none of that name.
        """
        found = self.tensors.get(name)
        if found is None:
            raise ScheduleError(f"there is no stage {name!r}; there are {', '.join(self.tensors)}")
        return found

    def computed(self, name: str) -> Tensor:
        """The tensor of that name, which is no input.

        Raises:
            ScheduleError: there is none, or it is an input.
        """
        tensor = self.tensor(name)
        if tensor.body is None:
            raise ScheduleError(f"{name} is an input: it has no loops; only stages that are computed can be scheduled")
        return tensor

    def loops(self, name: str) -> StageLoops:
        """What is said of a stage."""
        known = self.stages.get(name)
        if known is not None:
            return known
        tensor = self.computed(name)
        merged = tensor.axes[:1] if name in self.partials else ()
        axes = tuple(axis.name for axis in axes_of(tensor) if axis not in merged)
        return StageLoops(axes, axes)

    def axis(self, loop: LoopRef) -> Axis:
        """The axis that a loop walks, or a part of it; of a fused loop that of the last of its parts."""
        return self.axes(loop)[-1]

    def axes(self, loop: LoopRef) -> tuple[Axis, ...]:
        """The axes that a loop walks, or parts of them: several of a fused one."""
        stage = self.loops(loop.stage)
        return tuple(self._axis(stage, loop.stage, part) for part in stage.parts(loop.name))

    def _axis(self, stage: StageLoops, of: str, name: str) -> Axis:
        parents = {part: split.loop for split in stage.splits for part in split.parts}
        while name in parents:
            name = parents[name]
        return next(axis for axis in axes_of(self.tensor(of)) if axis.name == name)

    def live(self, loop: LoopRef) -> LoopRef:
        """``loop``, which must be there still.

        Raises:
            ScheduleError: it is not.
        """
        stage = self.loops(loop.stage)
        if loop.name in stage.loops:
            return loop
        made = [fused.name for fused in stage.fused if loop.name in fused.loops]
        made += [part for split in stage.splits if split.loop == loop.name and not split.fused for part in split.parts]
        if made:
            how = "split" if len(made) > 1 else "fused"
            raise ScheduleError(
                f"loop {loop.name} of stage {loop.stage} is gone: it was {how} into {', '.join(made)}; name one of these"
            )
        raise ScheduleError(f"stage {loop.stage} has no loop {loop.name}; it has {', '.join(stage.loops) or 'none'}")

    def with_stage(self, name: str, **changes: object) -> Structure:
        """The structure with something else said of a stage."""
        return replace(self, stages={**self.stages, name: replace(self.loops(name), **changes)})  # type: ignore[arg-type]

    @property
    def names(self) -> frozenset[str]:
        """Of all tensors and copies."""
        return frozenset(self.tensors) | {copy.name for of in self.stages.values() for copy in of.copies}

    def check_unused(self, name: str) -> None:
        """
        Raises:
            ScheduleError: something has this name already.
        """
        if name in self.names:
            raise ScheduleError(f"there is a stage {name!r} already; give the new one another name")

    def renamed(self, old: str, new: str) -> Structure:
        """What was said of the stage ``old``, said of ``new``: its loops, and all places in them."""

        def moved(at: Location) -> Location:
            if isinstance(at, Sampled):
                return replace(at, places=tuple(LoopRef(new, p.name) if p and p.stage == old else p for p in at.places))
            return LoopRef(new, at.name) if at is not None and at.stage == old else at

        stages = {}
        for name, said in self.stages.items():
            copies = tuple(replace(copy, at=moved(copy.at)) for copy in said.copies)
            starts = None if said.starts is None else Started(moved(said.starts.at))
            stages[new if name == old else name] = replace(said, at=moved(said.at), copies=copies, starts=starts)
        return replace(self, stages=stages)

    def rewritten(self, dag: ComputeDAG) -> Structure:
        """The structure over a computation that was rewritten."""
        return replace(self, dag=dag)

    def untouched(self, name: str) -> Tensor:
        """The stage, of which nothing may have been said yet.

        Raises:
            ScheduleError: something was.
        """
        tensor = self.computed(name)
        if not self.loops(name).is_plain:
            raise ScheduleError(f"stage {name} has a schedule already; rewrite its computation before its loops")
        return tensor

    def anchor(self, name: str) -> str | None:
        """The stage in whose loops, or right before them, the stage is computed; ``None`` of one with root loops of its own."""
        said = self.stages.get(name)
        if said is None or not (said.boxed or said.follows):
            return None
        named = next((place.stage for place in places(said.at) if place is not None), None)
        return named or next(iter(self.users(name)), None)

    def users(self, name: str) -> tuple[str, ...]:
        """The stages with root loops of their own in whose nests the stage is read."""
        consumers = self.dag.consumers(self.tensor(name))
        return tuple(dict.fromkeys(self.root(consumer.name) for consumer in consumers))

    def around(self, name: str) -> tuple[str, ...]:
        """The stage, the one in whose loops it is computed, the one in whose loops that is, and so on."""
        found = [name]
        while (anchor := self.anchor(found[-1])) is not None:
            found.append(anchor)
        return tuple(found)

    def root(self, name: str) -> str:
        """The stage with root loops in whose nest the stage is computed."""
        return self.around(name)[-1]
