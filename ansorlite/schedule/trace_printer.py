"""Traces as text: the Python function that makes them again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from keyword import iskeyword
from typing import Final

from ansorlite.schedule.primitives import Fuse, Reorder, Results, Step
from ansorlite.schedule.primitives.step import arguments, defaults
from ansorlite.schedule.refs import LoopRef, StageRef
from ansorlite.schedule.samples import Arithmetic, Chosen, Hole, Symbol, Trip
from ansorlite.schedule.structure import Sampled
from ansorlite.schedule.tiles import MAX_INNER

#: Between two lines of a trace.
BREAK: Final = "\n    "


def printed(steps: Sequence[Step], made: Sequence[Results]) -> str:
    """``def schedule(s): ...``, a line for each primitive, and lines that name stages and samples."""
    return TracePrinter(steps).text(steps, made)


def holes_in(value: object) -> list[Hole]:
    """The holes that an argument depends on, as often as it does."""
    match value:
        case Symbol():
            return list(value.holes())
        case Sampled(hole):
            return [hole]
        case tuple():
            return [hole for item in value for hole in holes_in(item)]
    return []


class TracePrinter:
    """Prints one trace: names of stages, loops and samples are given as they are met."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.names: dict[StageRef | LoopRef | str, str] = {}
        self.taken: set[str] = {"s", "schedule"}
        self.before: list[str] = []
        self.uses = Counter(name for step in steps for _, value in arguments(step) for name in _uses(value))

    def text(self, steps: Sequence[Step], made: Sequence[Results]) -> str:
        lines = list(self.lines(steps, made))
        return BREAK.join(["def schedule(s):", *(lines or ["pass"])])

    def lines(self, steps: Sequence[Step], made: Sequence[Results]) -> Iterator[str]:
        for step, results in zip(steps, made, strict=True):
            call = self.call(step)
            yield from self.before
            self.before.clear()
            targets = [self.fresh(each) for each in results]
            comma = "," if step.several and len(targets) == 1 else ""
            yield f"{', '.join(targets)}{comma} = {call}" if targets else call

    def call(self, step: Step) -> str:
        known = defaults(step)
        given: list[str] = []
        for position, (name, value) in enumerate(arguments(step)):
            if isinstance(step, Reorder | Fuse):
                given += map(self.value, step.loops)
            elif position < step.positional:
                given.append(self.value(value))
            elif name not in known:
                given.append(f"{name}={self.value(value)}")
            elif (said := self.argument(name, value, known[name])) is not None:
                given.append(said)
        return f"s.{step.method}({', '.join(given)})"

    def argument(self, name: str, value: object, default: object) -> str | None:
        """An argument that need not be given; ``None`` where it is what it is by default."""
        if not isinstance(value, Symbol) and value == default:
            return None
        return f"{name}={self.value(value)}"

    def value(self, value: object) -> str:
        """An argument."""
        match value:
            case StageRef() | LoopRef():
                return self.ref(value)
            case Sampled(hole, places):
                return self.sampled(hole, self.value(places), 1)
            case Chosen(hole):
                return self.sampled(hole, f"{hole.choices}", 1)
            case Trip(hole, level):
                return f"{self.sampled(hole, '', 0)}[{level}]"
            case Arithmetic(op, a, b):
                return f"({self.value(a)} {op.value} {self.value(b)})"
            case tuple() if value and all(isinstance(item, Trip) for item in value) and _whole(value):
                return self.sampled(value[0].hole, "", len(value))
            case tuple():
                return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
            case str():
                return _quoted(value)
        return repr(value)

    def sampled(self, hole: Hole, choices: str, here: int) -> str:
        """A sample: where it is used nowhere else, in its place; else by a name that it has got before."""
        if hole.name in self.names:
            return self.names[hole.name]
        if hole.tile is not None:
            tile = hole.tile
            options = [self.ref(tile.loop), str(tile.parts)]
            options += ["perfect=True"] if tile.perfect else []
            options += [f"innermost={tile.innermost}"] if tile.innermost is not None else []
            options += [f"max_innermost={tile.max_innermost}"] if tile.max_innermost != MAX_INNER else []
            options += [f"most={tile.most}"] if tile.most is not None else []
            call = f"s.sample_tile({', '.join(options)}, name={_quoted(hole.name)})"
        else:
            weights = f", weights={hole.weights}" if hole.weights is not None else ""
            call = f"s.sample({choices}{weights}, name={_quoted(hole.name)})"
        if here and self.uses[hole.name] == here:
            return call
        name = self.unused("".join(c if c.isalnum() else "_" for c in hole.name))
        self.names[hole.name] = name
        self.before.append(f"{name} = {call}")
        return name

    def ref(self, ref: StageRef | LoopRef) -> str:
        """A stage or loop: by the name that it got when it was made."""
        if ref in self.names:
            return self.names[ref]
        if isinstance(ref, LoopRef):
            return f"{self.ref(StageRef(ref.stage))}[{_quoted(ref.name)}]"
        name = self.fresh(ref)
        self.before.append(self.declaration(name, ref))
        return name

    def declaration(self, name: str, ref: StageRef) -> str:
        """The line that gives a stage a name."""
        return f"{name} = s.stage({_quoted(ref.name)})"

    def fresh(self, ref: StageRef | LoopRef) -> str:
        """A name for something new."""
        name = ref.name if isinstance(ref, StageRef) or ref.name not in self.taken else f"{ref.stage}_{ref.name}"
        self.names[ref] = self.unused(name)
        return self.names[ref]

    def unused(self, name: str) -> str:
        name = name if name.isidentifier() else f"v_{name}"
        while name in self.taken or iskeyword(name):
            name += "_"
        self.taken.add(name)
        return name


def _quoted(text: str) -> str:
    """A string as Python and JSON write it."""
    return json.dumps(text)


def _uses(value: object) -> list[str]:
    return [hole.name for hole in holes_in(value)]


def _whole(trips: tuple[Trip, ...]) -> bool:
    """Whether these are all levels of one tile, in order."""
    hole = trips[0].hole
    levels = [trip.level for trip in trips if trip.hole is hole]
    return hole.tile is not None and levels == list(range(hole.tile.parts)) and len(trips) == len(levels)
