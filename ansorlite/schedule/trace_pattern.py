"""Which row of a sketch a printed trace is: what is decided in it, found without replaying it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.schedule.primitives import Step
from ansorlite.schedule.refs import LoopRef, StageRef
from ansorlite.schedule.samples import Arithmetic, Chosen, Symbol, Trip, Value, evaluate_by
from ansorlite.schedule.structure import Sampled
from ansorlite.schedule.trace import Trace
from ansorlite.schedule.trace_printer import BREAK, TracePrinter

_NUMBER: Final = "\x00N\x00"
_PLACE: Final = "\x00P\x00"
#: Around an argument that is left out where it is what it is by default, and around a line that may stand further on.
_ARGUMENT, _ARGUMENT_END, _LINE, _LINE_END = "\x00a\x00", "\x00A\x00", "\x00l\x00", "\x00L\x00"
_REGULAR: Final = {
    # No number of a trace has more digits.
    _NUMBER: r"(-?\d{1,18})",
    _PLACE: r'(\w+(?:\["[^"]*"\])?)',
    f", {_ARGUMENT}": "(?:, ",
    _ARGUMENT_END: ")?",
    _LINE: "(?:",
    f"{_LINE_END}{BREAK}": f"{re.escape(BREAK)})?",
}
#: Choices of several holes that one number is made of are tried together, so many at most.
_MOST_TOGETHER: Final = 1 << 20

#: By hole: which of its choices it may be.
_Possible: TypeAlias = dict[str, NDArray[np.bool_]]


class TracePattern:
    """What the traces that a sketch's rows make have in common, and where they differ."""

    def __init__(self, trace: Trace) -> None:
        self._holes = trace.holes
        printer = _Printer(trace.steps)
        text = printer.text(trace.steps, trace.made)
        self._met, self._places, self._left_out = printer.met, printer.places, printer.left_out
        pieces = re.split(f"({'|'.join(map(re.escape, _REGULAR))})", text)
        self._pattern = re.compile("".join(_REGULAR.get(piece) or re.escape(piece) for piece in pieces))

    def row(self, text: str) -> tuple[int, ...] | None:
        """A row that makes the trace ``text``; ``None`` if none does."""
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        possible = {hole.name: np.ones(hole.size, bool) for hole in self._holes}
        made: list[tuple[Arithmetic, int]] = []
        for number, (met, found) in enumerate(zip(self._met, match.groups(), strict=True)):
            said = self._left_out[number] if found is None else found
            match met:
                case Sampled(hole):
                    possible[hole.name] &= [place == said for place in self._places[number]]
                case Arithmetic():
                    made.append((met, int(said)))
                case Chosen(hole) | Trip(hole):
                    possible[hole.name] &= _values(met, self._numbers) == int(said)
        for names in self._together:
            _decide([each for each in made if next(each[0].holes()).name in names], names, possible, self._numbers)
        return tuple(int(of.argmax()) for of in possible.values()) if all(of.any() for of in possible.values()) else None

    @cached_property
    def _numbers(self) -> Mapping[str, NDArray[np.int64]]:
        """Every choice of each hole."""
        return {hole.name: np.arange(hole.size) for hole in self._holes}

    @cached_property
    def _together(self) -> list[list[str]]:
        """Holes that numbers in the trace are made of, those of one number in one list."""
        groups: list[list[str]] = []
        for met in self._met:
            if isinstance(met, Arithmetic):
                mine = [hole.name for hole in met.holes()]
                joined = [name for group in groups if set(group) & set(mine) for name in group]
                groups = [group for group in groups if not set(group) & set(mine)]
                groups.append(list(dict.fromkeys([*joined, *mine])))
        return groups


def _decide(
    made: Sequence[tuple[Arithmetic, int]], names: Sequence[str], possible: _Possible, numbers: Mapping[str, NDArray[np.int64]]
) -> None:
    """Leaves of what holes may be one choice each that gives all the numbers made of them; nothing, where none does."""
    open_ = [np.flatnonzero(possible[name]) for name in names]
    if prod(map(len, open_)) > _MOST_TOGETHER:
        open_ = [choices[:0] for choices in open_]
    at = dict(zip(names, np.ix_(*open_), strict=True))
    fits = np.ones([len(choices) for choices in open_], bool)
    for value, number in made:
        fits = fits & (_values(value, {**numbers, **at}) == number)
    first = [choices[:1] for choices in np.nonzero(fits)]
    for name, choices, place in zip(names, open_, first, strict=True):
        possible[name][:] = False
        possible[name][choices[place]] = True


def _values(value: Value, at: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """What a value is for each of the choices of its holes."""
    return np.asarray(evaluate_by(value, lambda hole, table: table[at[hole.name]], _divided), np.int64)


def _divided(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    # No trace has a quotient by 0 in it.
    return np.where(np.equal(y, 0), np.iinfo(np.int64).min, x // np.where(np.equal(y, 0), 1, y))


class _Printer(TracePrinter):
    """Prints what all rows have in common, and marks where they differ.

    Attributes:
        met: what was left out, in the order of the text.
        places: what is printed for each place that one of these chooses from, by its number.
        left_out: what those are that need not be in the text, by their numbers.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__(steps)
        self.met: list[Symbol | Sampled] = []
        self.places: dict[int, list[str]] = {}
        self.left_out: dict[int, str] = {}
        self._choosing = False
        self._perhaps: set[StageRef] = set()

    def value(self, value: object) -> str:
        match value:
            case Chosen() | Trip() | Arithmetic():
                # What a number is made of is found from all that are made of the same.
                self.met.append(value)
                return _NUMBER
            case Sampled(_, places):
                self._choosing = True
                self.places[len(self.met)] = [super(_Printer, self).value(place) for place in places]
                self._choosing = False
                self.met.append(value)
                return _PLACE
            case tuple() if all(isinstance(item, Trip) for item in value):
                return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        return super().value(value)

    def argument(self, name: str, value: object, default: object) -> str | None:
        number = len(self.met)
        text = super().argument(name, value, default)
        if text is None or not isinstance(value, Symbol | Sampled):
            return text
        self.left_out[number] = super().value(default)
        return f"{_ARGUMENT}{text}{_ARGUMENT_END}"

    def ref(self, ref: StageRef | LoopRef) -> str:
        """A stage that only some of the places that are chosen from name is named there, or further on."""
        if isinstance(ref, LoopRef) or (ref not in self._perhaps and (ref in self.names or not self._choosing)):
            return super().ref(ref)
        name = self.names.get(ref) or self.fresh(ref)
        line = f"{_LINE}{self.declaration(name, ref)}{_LINE_END}"
        self.before += [line] if line not in self.before else []
        if self._choosing:
            self._perhaps.add(ref)
        else:
            self._perhaps.discard(ref)
        return name
