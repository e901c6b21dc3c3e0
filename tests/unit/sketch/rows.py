"""Sketches, and rows of them by name instead of by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite import te
from ansorlite.schedule.primitives.step import arguments
from ansorlite.schedule.samples import Hole
from ansorlite.schedule.structure import Sampled
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from tests.targets import WIDE


def sketches(tensors: Sequence[te.Tensor]) -> tuple[Sketch, ...]:
    return derive(Task(tensors, WIDE))


def sketch_with(tensors: Sequence[te.Tensor], *steps: str, without: Sequence[str] = ()) -> Sketch:
    """The one sketch whose trace has all of ``steps`` in it and none of ``without``."""
    (found,) = (s for s in sketches(tensors) if all(x in s.text for x in steps) and not any(x in s.text for x in without))
    return found


#: The name of the root among places.
ROOT = "root"
#: A number, the trips of a tile, or the name of the loop that something is computed in.
Choice = int | tuple[int, ...] | str


def row_of(sketch: Sketch, **choices: Choice) -> NDArray[np.int64]:
    """A row; holes by name, a double underscore for the dot.

    Of a hole that is not named the first choice; a tile that is not named is all in its innermost loop, or as near as may be.
    """
    unknown = set(choices) - {hole.name.replace(".", "__") for hole in sketch.holes}
    assert not unknown, unknown
    places = _places(sketch)
    return np.array([_value(hole, choices.get(hole.name.replace(".", "__")), places) for hole in sketch.holes], dtype=np.int64)


def _places(sketch: Sketch) -> dict[str, list[str]]:
    """For each hole that chooses a place the loops to choose from."""
    return {
        value.hole.name: [ROOT if loop is None else loop.name for loop in value.places]
        for step in sketch.trace.steps
        for _, value in arguments(step)
        if isinstance(value, Sampled)
    }


def _value(hole: Hole, choice: Choice | None, places: dict[str, list[str]]) -> int:
    if hole.table is None:
        choices: Sequence[Choice] = places.get(hole.name, hole.choices)
        return 0 if choice is None else choices.index(choice)
    if choice is None:
        return int(np.lexsort(hole.table.trips.T)[-1])
    (found,) = np.flatnonzero((hole.table.trips == choice).all(axis=1))
    return int(found)
