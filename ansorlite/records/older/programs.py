"""Programs as the schemas before 3 named them: by the signature of a sketch, and a row of positions in today's tables.

What was recorded so can be told only as long as the same sketches are derived. They are derived here once more, and said in
the words of that time: their signatures, and which hole of today each column of a row is. To be deleted some versions on, when
no such records are left that anybody wants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ansorlite.rewrites.winograd import inverse_name
from ansorlite.schedule import primitives as p
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Chosen, Hole, Symbol, Trip, Value
from ansorlite.schedule.schedule import Schedule
from ansorlite.schedule.structure import Location, Sampled, places
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.state import State
from ansorlite.sketch.tiling import UNROLL_LIMITS, ends
from ansorlite.spaces.derivation import derived_states
from ansorlite.task import Task
from ansorlite.te.ops import DOTS

#: What the loops as written were called.
_NAIVE: Final = "naive"

#: The bands of a nest -> after which of them its epilogue could run. Where four are not all of space, the last is a vector's.
_AFTER: Final = {6: (1, 2, 4), 5: (1,), 4: (1, 2), 3: (1,)}


@dataclass(frozen=True)
class _Column:
    """A column of a row.

    Attributes:
        hole: the name of today's hole; ``None`` where there is nothing to choose any more.
        values: what each number of the column is in that hole.
    """

    hole: str | None
    values: Sequence[int]


@dataclass(frozen=True)
class OldSketch:
    """A sketch that had a signature then.

    Attributes:
        signature: it.
        sketch: the sketch.
        columns: of the rows of then.
    """

    signature: str
    sketch: Sketch
    columns: tuple[_Column, ...]

    def candidate(self, row: Sequence[int]) -> Candidate | None:
        """The program of a row of then; ``None`` if the sketch has no such row."""
        new = self.row(row)
        return None if new is None else self.sketch.candidate(new)

    def row(self, row: Sequence[int]) -> tuple[int, ...] | None:
        """The sketch's row of the program of a row of then; ``None`` if the sketch has no such row."""
        if len(row) != len(self.columns) or not all(
            0 <= value < len(column.values) for value, column in zip(row, self.columns, strict=True)
        ):
            return None
        found = {column.hole: column.values[value] for value, column in zip(row, self.columns, strict=True)}
        return tuple(found[hole.name] for hole in self.sketch.holes)


class OldPrograms:
    """The programs of a task by the names that they had."""

    def __init__(self, task: Task) -> None:
        found = [_said(_unrolling(task, state)) for state in derived_states(task)]
        #: By signature. Of equal ones the last counted.
        self.sketches = {sketch.signature: sketch for sketch in found if sketch is not None}

    def candidate(self, signature: str, row: Sequence[int]) -> Candidate | None:
        """The program that was recorded so; ``None`` if the task has none of that name any more."""
        if signature == _NAIVE:
            return None if row else NAIVE
        sketch = self.sketches.get(signature)
        return None if sketch is None else sketch.candidate(row)


def _unrolling(task: Task, state: State) -> State:
    """The state as it was when any loop could be unrolled: around functions, which are long enough, too."""
    s = Schedule(task.dag, task.target)
    for step in state.steps:
        match step:
            case p.Unroll(_, Chosen(Hole(name, choices=(0,)))):
                s.apply(replace(step, max_steps=Chosen(Hole(name, UNROLL_LIMITS))))
            case _:
                s.apply(step)
    return replace(state, schedule=s)


class _NeverSaidError(Exception):
    """A step that could not be said in the words of then: no record is of it."""


def _said(state: State) -> OldSketch | None:
    words = _Words(state)
    try:
        for step, made in _in_order(list(zip(state.schedule.trace.steps, state.schedule.trace.made, strict=True))):
            words.say(step, made)
    except _NeverSaidError:
        return None
    sketch = Sketch(state.schedule.structure, state.schedule.trace, state.target)
    if {column.hole for column in words.columns} - {None} != {hole.name for hole in sketch.holes}:
        return None
    signature = hashlib.sha256(repr(words.steps).encode()).hexdigest()[:12]
    return OldSketch(signature, sketch, tuple(words.columns))


def _in_order(steps: list[tuple[p.Step, p.Results]]) -> list[tuple[p.Step, p.Results]]:
    """The steps, those that place what Winograd transforms back in the order of then: the first one first."""
    backs = {
        inverse_name(step.stage.name, number)
        for step, _ in steps
        if isinstance(step, p.Winograd)
        for number in range(len(step.outputs))
    }
    backward = [n for n, (step, _) in enumerate(steps) if isinstance(step, p.ComputeAt) and step.stage.name in backs]
    # Each is followed by what is said of its loops, which is said with it wherever it stands.
    turned = dict(zip(backward, reversed(backward), strict=True))
    return [steps[turned.get(n, n)] for n in range(len(steps))]


class _Words:
    """The steps of a state as they were said then, and the columns of its rows."""

    def __init__(self, state: State) -> None:
        self.steps: list[object] = []
        self.columns: list[_Column] = []
        self._bands = state.bands
        self._structure = state.schedule.structure
        self._dots = {op.value: op for op in DOTS}
        self._numbers: dict[str, int] = {}
        self._loops: dict[LoopRef, str] = {}
        self._parallel: dict[str, p.Parallel] = {}
        self._vectors: dict[str, p.Vectorize] = {}
        self._unrolled: dict[str, p.Unroll] = {}
        for step in state.steps:
            match step:
                case p.Parallel(loops):
                    self._parallel[loops[0].stage] = step
                case p.Unroll(loops):
                    self._unrolled[loops[0].stage] = step
                case p.Vectorize(loop):
                    self._vectors[loop.stage] = step

    def say(self, step: p.Step, made: p.Results) -> None:
        """
        Args:
            made: the stages and loops that the step has made.

        Raises:
            _NeverSaidError: that could not be said.
        """
        match step:
            case p.Polyphase(loop, number) | p.Divide(loop, number):
                self._step(type(step).__name__, loop.stage, loop.name, number)
            case p.FuseDimensions(pairs):
                self._step("Fuse", tuple(name for name, _ in pairs))
            case p.Inline(stage):
                self._step("Inline", stage.name)
            case p.CacheWrite(stage, name):
                self._step("CacheWrite", stage.name, name)
            case p.Rfactor(loop, name):
                self._step("Rfactor", loop.stage, loop.name, name)
            case p.Convert(stage, copies):
                self._step("Convert", stage.name, copies)
            case p.Winograd(stage, outputs):
                self._step("Winograd", stage.name, outputs)
            case p.Tensorize(loop, op):
                self._step("Dot", loop.stage, loop.name, self._dots[op], tuple(stage.name for stage in made))
            case p.Split(loop, factors):
                self._split(loop, factors)
            case p.Reorder(loops):
                self._nest(loops[0].stage)
            case p.ReverseComputeAt(stage, at):
                self._follow(stage.name, at)
            case p.ComputeAt(stage, at):
                self._attach(stage.name, at)
            case p.CacheRead(stage, tensor, at, _, name):
                self._step("CacheRead", tensor, stage.name, name, self._place(name, at))
            case p.Stream(stage, on):
                self._step("Stream", stage.name, self._value(f"{stage.name}.stream", on))
            case p.Parallel() | p.Vectorize() | p.Unroll():
                pass  # said with the nest, or the place, of the stage
            case _:
                raise _NeverSaidError

    def _split(self, loop: LoopRef, factors: Sequence[Value | None]) -> None:
        axis, first = self._structure.axis(loop).name, factors[0]
        if not isinstance(first, Trip) or first.hole.table is None or loop.name != axis:
            raise _NeverSaidError
        loops = tuple(f"{axis}{level}" for level in range(len(factors)))
        parts = next(split.parts for split in self._structure.loops(loop.stage).splits if split.loop == loop.name)
        self._loops |= {LoopRef(loop.stage, part): name for part, name in zip(parts, loops, strict=True)}
        hole = Hole(f"{loop.stage}.{axis}", table=first.hole.table)
        self.columns.append(_Column(first.hole.name, range(hole.size)))
        self._step("Split", loop.stage, axis, loops, hole)

    def _nest(self, stage: str) -> None:
        if stage not in self._bands:
            raise _NeverSaidError
        bands = self._bands[stage]
        self._step("Reorder", stage, tuple(tuple(self._loops.get(loop, loop.name) for loop in band) for band in bands))
        self._annotations(stage, (0,))
        unroll = self._unrolled.get(stage)
        limits = UNROLL_LIMITS if unroll is None else unroll.max_steps
        self._step("Unroll", stage, self._value(f"{stage}.unroll", limits))

    def _annotations(self, stage: str, depths: tuple[int, ...]) -> None:
        """What both nests and regions have; ``depths`` could be chosen from where there is nothing that could be parallel."""
        parallel, vector = self._parallel.get(stage), self._vectors.get(stage)
        depth = None if parallel is None else parallel.depth
        self._step("Parallel", stage, self._value(f"{stage}.parallel", depths if depth is None else depth))
        if vector is not None:
            axis = self._structure.axis(vector.loop).name
            self._step("Vectorize", stage, axis, self._value(f"{stage}.lanes", vector.lanes))

    def _attach(self, stage: str, at: Location) -> None:
        anchor = next((loop.stage for loop in places(at) if loop is not None), None) or self._structure.users(stage)[0]
        self._step("ComputeAt", stage, anchor, self._place(stage, at))
        # Where it was sampled, how many loops are parallel was a choice, whether there were loops or not.
        depths = tuple(range(min(3, self._structure.tensor(stage).ndim + 1))) if isinstance(at, Sampled) else (0,)
        prepared = isinstance(at, Sampled) and len(at.places) == 1
        self._annotations(stage, depths[-1:] if prepared else depths)

    def _follow(self, stage: str, at: Location) -> None:
        leader = next(loop.stage for loop in places(at) if loop is not None)
        if not isinstance(at, Sampled) or leader not in self._bands:
            raise _NeverSaidError
        bands, vector = self._bands[leader], self._vectors.get(leader)
        ended = ends(bands)
        summed = vector is not None and self._structure.axis(vector.loop).reduce
        after = _AFTER.get(len(bands), ())[: 1 if summed else None]
        values = [at.places.index(ended[number - 1] or at.places[0]) for number in after]
        self.columns.append(_Column(at.hole.name, values))
        self._step("Follow", stage, leader, Hole(f"{leader}.at", after))

    def _place(self, name: str, at: Location) -> Hole:
        """The bands that something may be computed in: 0 was the root."""
        numbers = tuple(range(len(places(at)))) if isinstance(at, Sampled) else (0,)
        self.columns.append(_Column(at.hole.name if isinstance(at, Sampled) else None, numbers))
        return Hole(f"{name}.at", numbers if isinstance(at, Sampled) or at is None else (1,))

    def _value(self, name: str, value: Value | tuple[int, ...]) -> Hole:
        """What a number is chosen from; numbers themselves where nothing depends on the choice any more."""
        if isinstance(value, Chosen):
            self.columns.append(_Column(value.hole.name, range(value.hole.size)))
            return Hole(name, value.hole.choices)
        if isinstance(value, Symbol):
            raise _NeverSaidError
        choices = value if isinstance(value, tuple) else (value,)
        self.columns.append(_Column(None, choices))
        return Hole(name, choices)

    def _step(self, kind: str, *fields: object) -> None:
        self.steps.append((kind, *map(self._without_names, fields)))

    def _without_names(self, value: object) -> object:
        match value:
            case str():
                return self._numbers.setdefault(value, len(self._numbers))
            case tuple():
                return tuple(self._without_names(item) for item in value)
            case Hole(name, choices, table):
                spans = None if table is None else hashlib.sha256(table.spans.tobytes()).hexdigest()
                return ("Hole", self._without_names(name), choices, spans)
        return value
