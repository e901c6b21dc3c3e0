"""Which row of a sketch a printed trace is: what is decided in it, found without replaying it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from ansorlite.schedule.primitives import Step
from ansorlite.schedule.samples import Arithmetic, Chosen, Hole, Trip
from ansorlite.schedule.structure import Sampled
from ansorlite.schedule.trace import Trace
from ansorlite.schedule.trace_printer import TracePrinter

_NUMBER: Final = "\x00N\x00"
_PLACE: Final = "\x00P\x00"
_REGULAR: Final = {_NUMBER: r"(-?\d+)", _PLACE: r'(\w+(?:\["[^"]*"\])?)'}


class TracePattern:
    """What the traces that a sketch's rows make have in common, and where they differ."""

    def __init__(self, trace: Trace) -> None:
        self._holes = trace.holes
        printer = _Printer(trace.steps)
        text = printer.text(trace.steps, trace.made)
        self._met, self._places = printer.met, printer.places
        pieces = re.split(f"({_NUMBER}|{_PLACE})", text)
        self._pattern = re.compile("".join(_REGULAR.get(piece) or re.escape(piece) for piece in pieces))

    def row(self, text: str) -> tuple[int, ...] | None:
        """The row that makes the trace ``text``; ``None`` if none does."""
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        said: dict[str, dict[int, str]] = {}
        for (name, level), value in zip(self._met, match.groups(), strict=True):
            if said.setdefault(name, {}).setdefault(level, value) != value:
                return None
        row = [self._position(hole, said.get(hole.name, {})) for hole in self._holes]
        return None if any(position is None for position in row) else tuple(position for position in row if position is not None)

    def _position(self, hole: Hole, said: dict[int, str]) -> int | None:
        """Which choice it is."""
        if hole.table is not None:
            if sorted(said) != list(range(hole.table.parts)):
                return None
            (found,) = np.nonzero((hole.table.trips == [int(said[level]) for level in sorted(said)]).all(axis=1))
            return int(found[0]) if len(found) else None
        choices: Sequence[str] = self._places.get(hole.name) or [str(choice) for choice in hole.choices]
        return choices.index(said[0]) if 0 in said and said[0] in choices else None


class _Printer(TracePrinter):
    """Prints what all rows have in common, and marks where they differ.

    Attributes:
        met: the holes whose choices were left out, in the order of the text; of tiles with the level.
        places: what is printed for each place that a hole chooses from.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__(steps)
        self.met: list[tuple[str, int]] = []
        self.places: dict[str, list[str]] = {}

    def value(self, value: object) -> str:
        match value:
            case Chosen(hole):
                self.met.append((hole.name, 0))
                return _NUMBER
            case Trip(hole, level):
                self.met.append((hole.name, level))
                return _NUMBER
            case Arithmetic():
                # What it is made of cannot be told from it.
                self.met.append(("", len(self.met)))
                return _NUMBER
            case Sampled(hole, places):
                self.places[hole.name] = [super(_Printer, self).value(place) for place in places]
                self.met.append((hole.name, 0))
                return _PLACE
            case tuple() if all(isinstance(item, Trip) for item in value):
                return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        return super().value(value)
