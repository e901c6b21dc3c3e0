"""Traces: what was done to a computation, primitive by primitive.

A trace prints as the Python function that makes it again (``trace_printer.py``), and is read back from that text
(``trace_reader.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from ansorlite.schedule.primitives import Results, Step
from ansorlite.schedule.primitives.step import arguments
from ansorlite.schedule.samples import Choose, Chosen, Hole, Symbol, evaluate
from ansorlite.schedule.structure import Sampled
from ansorlite.schedule.trace_printer import holes_in, printed


@dataclass(frozen=True)
class Trace:
    """The primitives that were applied, in order.

    Attributes:
        steps: each with its arguments; what is not decided yet are symbols in them.
        made: the stages and loops that each has made.
    """

    steps: tuple[Step, ...]
    made: tuple[Results, ...]

    def __str__(self) -> str:
        return printed(self.steps, self.made)

    @cached_property
    def holes(self) -> tuple[Hole, ...]:
        """What is to be decided, in the order in which it is met: the columns of a row."""
        found: dict[str, Hole] = {}
        for step in self.steps:
            for _, value in arguments(step):
                for hole in holes_in(value):
                    found.setdefault(hole.name, hole)
        return tuple(found.values())

    def decided(self, row: Sequence[int]) -> Trace:
        """The trace with the choices of a row in the place of its holes."""
        choose = chosen(self.holes, row)
        return Trace(tuple(_changed(step, lambda value: _decided(value, choose)) for step in self.steps), self.made)


def chosen(holes: Sequence[Hole], row: Sequence[int]) -> Choose:
    """What one row chooses."""
    column = {hole.name: position for position, hole in enumerate(holes)}
    return lambda hole, table: int(table[row[column[hole.name]]])


def _changed(step: Step, change: Callable[[object], object]) -> Step:
    """The step with every argument changed that has something open in it."""
    changes = {name: change(value) for name, value in arguments(step) if holes_in(value)}
    return cast("Step", replace(cast("Any", step), **changes)) if changes else step


def _decided(value: object, choose: Choose) -> object:
    match value:
        case Symbol():
            return evaluate(cast("Any", value), choose)
        case Sampled(hole, places):
            return places[cast("int", evaluate(Chosen(hole), choose))]
        case tuple():
            return tuple(_decided(item, choose) for item in value)
    return value
