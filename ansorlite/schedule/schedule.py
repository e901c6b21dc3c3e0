"""The schedule of a computation: what a person, a template, a schedule function and a derivation rule all write."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, overload

from ansorlite.analysis.access import axes_of
from ansorlite.errors import ScheduleError
from ansorlite.once import once_for_each
from ansorlite.rewrites.stages import without_unit_reductions
from ansorlite.schedule import primitives as p
from ansorlite.schedule.refs import LoopRef, Name, StageRef
from ansorlite.schedule.samples import Chosen, Hole, Symbol, Tile, Trip, Value, most
from ansorlite.schedule.structure import Location, Sampled, Structure
from ansorlite.schedule.tiles import MAX_INNER, tile_table
from ansorlite.schedule.trace import Trace
from ansorlite.target import Target
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis
from ansorlite.te.rewriting import unused_name, with_unique_names
from ansorlite.te.tensor import Tensor

#: A sample has at most so many choices: the tables of all of them are in memory.
MOST_CHOICES: Final = 65536

_Choice = TypeVar("_Choice")


@dataclass(frozen=True)
class Stage:
    """A stage of a schedule."""

    name: str
    _schedule: Schedule

    @property
    def tensor(self) -> Tensor:
        """What it computes now, after the rewrites so far."""
        return self._schedule.structure.computed(self.name)

    @property
    def loops(self) -> tuple[LoopRef, ...]:
        """The loops as they are now, the outermost first."""
        return tuple(LoopRef(self.name, loop) for loop in self._schedule.structure.loops(self.name).loops)

    @property
    def axes(self) -> tuple[LoopRef, ...]:
        """The loops over the axes of the result, as they are before anything is split."""
        return self._of([axis for axis in axes_of(self.tensor) if not axis.reduce])

    @property
    def reduce_axes(self) -> tuple[LoopRef, ...]:
        """The loops over what is added up, as they are before anything is split."""
        return self._of([axis for axis in axes_of(self.tensor) if axis.reduce])

    def __getitem__(self, axis: Axis | str) -> LoopRef:
        """The loop over an axis, or of a name."""
        return LoopRef(self.name, axis if isinstance(axis, str) else axis.name)

    def __repr__(self) -> str:
        return f"<stage {self.name}: {' '.join(loop.name for loop in self.loops)}>"

    def _of(self, axes: Sequence[Axis]) -> tuple[LoopRef, ...]:
        known = self._schedule.structure.loops(self.name).axes
        return tuple(LoopRef(self.name, axis.name) for axis in axes if axis.name in known)


@once_for_each
def _as_written(dag: ComputeDAG) -> Structure:
    return Structure(without_unit_reductions(with_unique_names(dag)))


@once_for_each
def _rewritten(structure: Structure, rewrite: p.Rewrite) -> Structure:
    """Found once: hundreds of programs of a task begin with the same rewrites. They have expressions in common, then, of which
    facts are found once, too."""
    return rewrite.apply(structure)


class Schedule:
    """A computation, and what was done to it so far.

    Every method is one primitive: it checks whether it can be done, applies it, and writes it to the trace. Stages have the names
    of their tensors; of those that share one the second gets a number.

    Attributes:
        structure: what the primitives so far have made of the computation.
        steps: the primitives so far.
    """

    def __init__(self, dag: ComputeDAG, target: Target | None = None, *, forced: Mapping[str, int] | None = None) -> None:
        """Begin with the loops as written.

        Args:
            dag: the computation; its reductions over one element vanish.
            target: what the program is for; where none is given, numbers of lanes have to be.
            forced: choices that are made already, by the name of the hole: positions among the choices.
        """
        self.structure = _as_written(dag)
        self.steps: tuple[p.Step, ...] = ()
        self._made: tuple[p.Results, ...] = ()
        self._target = target
        self._forced = dict(forced or {})
        self._holes: dict[str, Hole] = {}

    def copy(self) -> Schedule:
        """A schedule that goes on by itself from here."""
        twin = object.__new__(Schedule)
        twin.structure, twin.steps, twin._made = self.structure, self.steps, self._made
        twin._target, twin._forced, twin._holes = self._target, self._forced, dict(self._holes)
        return twin

    @property
    def dag(self) -> ComputeDAG:
        """The computation after the rewrites so far."""
        return self.structure.dag

    @property
    def trace(self) -> Trace:
        """What was done so far."""
        return Trace(self.steps, self._made)

    def stage(self, name: str | Tensor) -> Stage:
        """
        Raises:
            ScheduleError: there is no such stage, or it is an input.
        """
        return Stage(self.structure.computed(name if isinstance(name, str) else name.name).name, self)

    def apply(self, step: p.Step) -> tuple[Stage | LoopRef, ...]:
        """Do one primitive; the stages and loops that it makes.

        Raises:
            ScheduleError: it cannot be done. The schedule stays as it was.
        """
        p.check_arguments(step)
        after = _rewritten(self.structure, step) if isinstance(step, p.Rewrite) else step.apply(self.structure)
        results = step.results(after)
        self.structure, self.steps, self._made = after, (*self.steps, step), (*self._made, results)
        return tuple(Stage(made.name, self) if isinstance(made, StageRef) else made for made in results)

    # Loops --------------------------------------------------------------------------------------------------------

    def split(self, loop: LoopRef, factors: Sequence[Value | None], *, tail: str | None = None) -> tuple[LoopRef, ...]:
        """See :class:`~ansorlite.schedule.primitives.loops.Split`."""
        return _loops(self.apply(p.Split(_loop(loop), tuple(factors), tail)))

    def fuse(self, *loops: LoopRef) -> LoopRef:
        """See :class:`~ansorlite.schedule.primitives.loops.Fuse`."""
        (fused,) = _loops(self.apply(p.Fuse(tuple(map(_loop, loops)))))
        return fused

    def reorder(self, *loops: LoopRef) -> None:
        """See :class:`~ansorlite.schedule.primitives.loops.Reorder`."""
        self.apply(p.Reorder(tuple(map(_loop, loops))))

    def parallel(self, loops: LoopRef | Sequence[LoopRef], *, depth: Value | None = None) -> None:
        """See :class:`~ansorlite.schedule.primitives.annotations.Parallel`."""
        self.apply(p.Parallel(_all(loops), depth))

    def vectorize(self, loop: LoopRef, *, lanes: Value | None = None) -> None:
        """See :class:`~ansorlite.schedule.primitives.annotations.Vectorize`; by default of as many lanes as a register has."""
        if lanes is None:
            if self._target is None:
                raise ScheduleError(f"loop {loop} is to be vectorized for no target in particular; say how many lanes")
            lanes = self._target.lanes(self.structure.computed(loop.stage).dtype)
        self.apply(p.Vectorize(_loop(loop), lanes))

    def unroll(self, loops: LoopRef | Sequence[LoopRef], *, max_steps: Value | None = None) -> None:
        """See :class:`~ansorlite.schedule.primitives.annotations.Unroll`."""
        self.apply(p.Unroll(_all(loops)) if max_steps is None else p.Unroll(_all(loops), max_steps))

    def bind(self, loop: LoopRef, to: str) -> None:
        """See :class:`~ansorlite.schedule.primitives.annotations.Bind`."""
        self.apply(p.Bind(_loop(loop), to))

    def pipeline(self, loop: LoopRef, stages: Value) -> None:
        """See :class:`~ansorlite.schedule.primitives.annotations.Pipeline`."""
        self.apply(p.Pipeline(_loop(loop), stages))

    def stream(self, stage: Stage | str, *, on: Value = 1) -> None:
        """See :class:`~ansorlite.schedule.primitives.annotations.Stream`."""
        self.apply(p.Stream(_stage(stage), on))

    # Places -------------------------------------------------------------------------------------------------------

    def compute_at(self, stage: Stage | str, at: Location, *, scope: str | None = None) -> None:
        """See :class:`~ansorlite.schedule.primitives.places.ComputeAt`."""
        self.apply(p.ComputeAt(_stage(stage), at, scope))

    def compute_root(self, stage: Stage | str) -> None:
        """See :class:`~ansorlite.schedule.primitives.places.ComputeRoot`."""
        self.apply(p.ComputeRoot(_stage(stage)))

    def reverse_compute_at(self, stage: Stage | str, at: Location) -> None:
        """See :class:`~ansorlite.schedule.primitives.places.ReverseComputeAt`."""
        self.apply(p.ReverseComputeAt(_stage(stage), at))

    def cache_read(
        self,
        stage: Stage | str,
        tensor: Tensor | str,
        *,
        at: Location = None,
        layout: str = "packed",
        name: str | None = None,
        computed: bool = False,
        scope: str | None = None,
    ) -> Stage | None:
        """See :class:`~ansorlite.schedule.primitives.places.CacheRead`; the copy, where it is a stage."""
        source = Name(tensor if isinstance(tensor, str) else tensor.name)
        copy = Name(name or self.free(f"{source}_{layout}"))
        return next(iter(_stages(self.apply(p.CacheRead(_stage(stage), source, at, layout, copy, computed, scope)))), None)

    def storage_align(self, buffer: Stage | str, loop: LoopRef, factor: Value, offset: Value = 0) -> None:
        """See :class:`~ansorlite.schedule.primitives.storage.StorageAlign`."""
        self.apply(p.StorageAlign(Name(buffer if isinstance(buffer, str) else buffer.name), _loop(loop), factor, offset))

    def swizzle(self, buffer: Stage | str, chunks: Value) -> None:
        """See :class:`~ansorlite.schedule.primitives.storage.Swizzle`."""
        self.apply(p.Swizzle(Name(buffer if isinstance(buffer, str) else buffer.name), chunks))

    def decompose_reduction(self, stage: Stage | str, at: Location) -> None:
        """See :class:`~ansorlite.schedule.primitives.places.DecomposeReduction`."""
        self.apply(p.DecomposeReduction(_stage(stage), at))

    def prefetch(self, stage: Stage | str, tensor: Tensor | str, *, at: LoopRef, distance: Value = 1) -> None:
        """See :class:`~ansorlite.schedule.primitives.prefetch.PrefetchRead`."""
        source = Name(tensor if isinstance(tensor, str) else tensor.name)
        self.apply(p.PrefetchRead(_stage(stage), source, _loop(at), distance))

    # Rewrites of the computation ----------------------------------------------------------------------------------

    def inline(self, stage: Stage | str) -> None:
        """See :class:`~ansorlite.schedule.primitives.rewrites.Inline`."""
        self.apply(p.Inline(_stage(stage)))

    def cache_write(self, stage: Stage | str, *, scope: str | None = None, at: Location = None, name: str | None = None) -> Stage:
        """See :class:`~ansorlite.schedule.primitives.rewrites.CacheWrite`."""
        ref = _stage(stage)
        return _one_stage(self.apply(p.CacheWrite(ref, Name(name or f"{ref.name}_local"), scope, at)))

    def rfactor(self, loop: LoopRef, *, name: str | None = None, parts: int | None = None) -> Stage:
        """See :class:`~ansorlite.schedule.primitives.rewrites.Rfactor`."""
        return _one_stage(self.apply(p.Rfactor(_loop(loop), Name(name or f"{loop.stage}_rf"), parts)))

    def add_unit_axis(self, stage: Stage | str) -> None:
        """See :class:`~ansorlite.schedule.primitives.rewrites.AddUnitAxis`."""
        self.apply(p.AddUnitAxis(_stage(stage)))

    def tensorize(
        self, loop: LoopRef, op: str, *, words: tuple[str, str] | None = None, steps_last: bool = False
    ) -> tuple[Stage, ...]:
        """See :class:`~ansorlite.schedule.primitives.products.Tensorize`."""
        a, b = words or (unused_name(self.dag, f"{loop.stage}_a"), unused_name(self.dag, f"{loop.stage}_b"))
        return _stages(self.apply(p.Tensorize(_loop(loop), op, (Name(a), Name(b)), steps_last)))

    def convert(self, stage: Stage | str, copies: Sequence[str]) -> tuple[Stage, ...]:
        """See :class:`~ansorlite.schedule.primitives.products.Convert`."""
        return _stages(self.apply(p.Convert(_stage(stage), tuple(map(Name, copies)))))

    def polyphase(self, loop: LoopRef, stride: int) -> None:
        """See :class:`~ansorlite.schedule.primitives.rewrites.Polyphase`."""
        self.apply(p.Polyphase(_loop(loop), stride))

    def divide(self, loop: LoopRef, divisor: int) -> None:
        """See :class:`~ansorlite.schedule.primitives.rewrites.Divide`."""
        self.apply(p.Divide(_loop(loop), divisor))

    def fuse_dimensions(self, pairs: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        """See :class:`~ansorlite.schedule.primitives.rewrites.FuseDimensions`."""
        self.apply(p.FuseDimensions(tuple((Name(name), tuple(dims)) for name, dims in pairs)))

    def winograd(self, stage: Stage | str, outputs: Sequence[int]) -> None:
        """See :class:`~ansorlite.schedule.primitives.rewrites.Winograd`."""
        self.apply(p.Winograd(_stage(stage), tuple(outputs)))

    def matrix_unit(
        self,
        stage: Stage | str,
        unit: str,
        *,
        layouts: tuple[str, str] = ("steps_last", "steps_last"),
        factors: tuple[str, str] | None = None,
    ) -> tuple[Stage, ...]:
        """See :class:`~ansorlite.schedule.primitives.products.UseMatrixUnit`."""
        ref = _stage(stage)
        a, b = factors or (self.free(f"{ref.name}_a"), self.free(f"{ref.name}_b"))
        return _stages(self.apply(p.UseMatrixUnit(ref, unit, layouts, (Name(a), Name(b)))))

    def free(self, name: str) -> str:
        """``name``, longer if a stage, a copy or a sample has it already."""
        while name in self.structure.names or f"{name}.at" in self._holes:
            name += "_"
        return name

    # Samples ------------------------------------------------------------------------------------------------------

    @overload
    def sample(self, choices: Iterable[int], *, weights: Sequence[float] | None = None, name: str | None = None) -> Value: ...
    @overload
    def sample(
        self, choices: Iterable[LoopRef | None], *, weights: Sequence[float] | None = None, name: str | None = None
    ) -> Location: ...

    def sample(
        self,
        choices: Iterable[int] | Iterable[LoopRef | None],
        *,
        weights: Sequence[float] | None = None,
        name: str | None = None,
    ) -> Value | Location:
        """One of several ints, or of several places: loops of one stage, and ``None``, the root.

        Args:
            weights: how likely each is to be drawn at random; the search goes by what it finds.

        Raises:
            ScheduleError: no choices, too many, some that are neither ints nor places, a name that is taken.
        """
        found = _few(choices, "a sample has")
        label = self._named(name, len(self._holes))
        likely = None if weights is None else _weights(label, weights, len(found))
        if all(isinstance(choice, int) for choice in found):
            numbers = tuple(int(choice) for choice in found if isinstance(choice, int))
            if label in self._forced:
                return numbers[self._forced[label]]
            return Chosen(self._hole(Hole(label, numbers, weights=likely)))
        if not all(choice is None or isinstance(choice, LoopRef) for choice in found):
            raise ScheduleError(
                f"sample {label} is to choose from {found}: choices are whole numbers, or loops and None (the root)"
            )
        places = tuple(choice for choice in found if choice is None or isinstance(choice, LoopRef))
        if label in self._forced:
            return places[self._forced[label]]
        return Sampled(self._hole(Hole(label, tuple(range(len(places))), weights=likely)), places)

    def sample_location(self, stage: Stage | str, *, name: str | None = None) -> Location:
        """A place for a stage: the root, or any loop of the one stage whose loops all that reads it is computed in.

        Raises:
            ScheduleError: nothing reads the stage, or several stages do.
        """
        ref = _stage(stage)
        tensor = self.structure.computed(ref.name)
        users = self.structure.users(tensor.name)
        if len(users) != 1:
            raise ScheduleError(
                f"stage {ref.name} has no place inside of another one's loops: "
                + (
                    f"{', '.join(users)} read it; compute all but one of them in loops of that one"
                    if users
                    else "nothing reads it"
                )
            )
        (user,) = users
        return self.sample((None, *Stage(user, self).loops), name=name or f"{ref.name}.at")

    def sample_tile(
        self,
        loop: LoopRef,
        parts: int,
        *,
        perfect: bool = False,
        innermost: Sequence[int] | None = None,
        max_innermost: int = MAX_INNER,
        most: Sequence[int | None] | None = None,
        name: str | None = None,
    ) -> tuple[Value, ...]:
        """The iterations of ``parts`` loops, the outermost first, that a loop is to be split into.

        Args:
            perfect: only such as divide the loop's iterations.
            innermost: what the innermost loop's iterations are chosen from.
            max_innermost: at most so many.
            most: at most so many of each loop, the outermost first (``None``: any number); where no tile is such, all tiles are
                taken.

        Raises:
            ScheduleError: no tile is such, or the loop's own iterations are sampled, which none is sure to divide.
        """
        loop = self.structure.live(_loop(loop))
        if not 1 <= parts <= 8:
            raise ScheduleError(f"loop {loop} is to be split into {parts} loops; a tile has from 1 to 8 parts")
        limits = None if most is None else tuple(most)
        if limits is not None and len(limits) != parts:
            raise ScheduleError(f"loop {loop} is to be split into {parts} loops, but most has {len(limits)}; give one for each")
        extent, sampled = self._iterations(loop)
        if perfect and sampled:
            raise ScheduleError(
                f"the iterations of loop {loop} are sampled: no tile is sure to divide them; leave out perfect=True"
            )
        label = self._named(name, len(self._holes), f"{loop.stage}.{loop.name}")
        table = tile_table(extent, parts, perfect, max_innermost, limits)
        innermost = None if innermost is None else _few(innermost, "sample_tile's innermost has")
        if innermost is not None:
            table = table.with_innermost(innermost)
            if not table.rows:
                raise ScheduleError(
                    f"no tile of loop {loop}, of {extent} iterations, has {list(innermost)} innermost ones; "
                    f"name others, or raise max_innermost"
                )
        if label in self._forced:
            return tuple(int(trip) for trip in table.trips[self._forced[label]])
        tile = Tile(loop, parts, perfect, None if innermost is None else tuple(innermost), max_innermost, limits)
        hole = self._hole(Hole(label, table=table, tile=tile))
        return tuple(Trip(hole, level) for level in range(parts))

    def _iterations(self, loop: LoopRef) -> tuple[int, bool]:
        """How many a loop has at most, and whether that is sampled."""
        stage = self.structure.loops(loop.stage)
        fused = next((each for each in stage.fused if each.name == loop.name), None)
        name = loop.name
        if fused is not None:
            if len(fused.loops) > 1:
                several = [self._iterations(LoopRef(loop.stage, each)) for each in fused.loops]
                return math.prod(most for most, _ in several), any(open_ for _, open_ in several)
            name = fused.parts[0]
        for split in reversed(stage.splits):
            if name in split.parts:
                level = split.parts.index(name)
                around = split.loop if fused is None else fused.loops[0]
                whole, sampled = self._iterations(LoopRef(loop.stage, around))
                factor = split.factors[level]
                if factor is not None:
                    return most(factor), isinstance(factor, Symbol)
                others = [other for number, other in enumerate(split.factors) if number != level and other is not None]
                left = whole
                for other in others:
                    left = -(-left // (other if isinstance(other, int) else 1))
                return left, sampled or any(isinstance(other, Symbol) for other in others)
        return self.structure.axis(loop).extent, False

    def _named(self, name: str | None, number: int, default: str | None = None) -> str:
        if name is None:
            name = default if default is not None and default not in self._holes else f"x{number}"
        if name in self._holes:
            raise ScheduleError(f"there is a sample {name!r} already; give each a name of its own")
        return name

    def _hole(self, hole: Hole) -> Hole:
        self._holes[hole.name] = hole
        return hole


def _few(choices: Iterable[_Choice], whose: str) -> list[_Choice]:
    """All choices; ``whose``: and the verb."""
    found = list(itertools.islice(choices, MOST_CHOICES + 1))
    if len(found) > MOST_CHOICES:
        raise ScheduleError(f"{whose} more than {MOST_CHOICES:,} choices; sample an exponent, or a tile")
    if not found:
        raise ScheduleError(f"{whose} no choices; give it one at least")
    return found


def _weights(name: str, weights: Iterable[float], count: int) -> tuple[float, ...]:
    given = list(itertools.islice(weights, count + 1))
    if len(given) != count or any(weight < 0 for weight in given) or not sum(given) > 0:
        raise ScheduleError(f"sample {name} has {count} choices and the weights {given}; give each choice one, not all of them 0")
    return tuple(float(weight) / sum(given) for weight in given)


def _stage(stage: Stage | str) -> StageRef:
    return StageRef(stage if isinstance(stage, str) else stage.name)


def _loop(loop: LoopRef) -> LoopRef:
    if not isinstance(loop, LoopRef):
        raise ScheduleError(f"{loop!r} is no loop; take one of stage.loops, or of what split gave")
    return loop


def _all(loops: LoopRef | Sequence[LoopRef]) -> tuple[LoopRef, ...]:
    return (loops,) if isinstance(loops, LoopRef) else tuple(map(_loop, loops))


def _loops(made: Sequence[Stage | LoopRef]) -> tuple[LoopRef, ...]:
    return tuple(each for each in made if isinstance(each, LoopRef))


def _stages(made: Sequence[Stage | LoopRef]) -> tuple[Stage, ...]:
    return tuple(each for each in made if isinstance(each, Stage))


def _one_stage(made: Sequence[Stage | LoopRef]) -> Stage:
    (stage,) = _stages(made)
    return stage
