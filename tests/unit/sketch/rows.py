"""Sketches, and rows of them by name instead of by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite import te
from ansorlite.schedule.steps import Hole
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.sketch import Sketch
from ansorlite.task import Task
from tests.targets import WIDE


def sketches(tensors: Sequence[te.Tensor]) -> tuple[Sketch, ...]:
    return derive(Task(tensors, WIDE))


def sketch_with(tensors: Sequence[te.Tensor], *steps: str, without: Sequence[str] = ()) -> Sketch:
    """The one sketch whose text has all of ``steps`` in it and none of ``without``."""
    (found,) = (s for s in sketches(tensors) if all(x in s.text for x in steps) and not any(x in s.text for x in without))
    return found


def row_of(sketch: Sketch, **choices: int | tuple[int, ...]) -> NDArray[np.int64]:
    """A row; holes by name, a double underscore for the dot: the value of a choice, or the trips of a tile.

    Of a hole that is not named the first choice; a tile that is not named is all in its innermost loop, or as near as may be.
    """
    unknown = set(choices) - {hole.name.replace(".", "__") for hole in sketch.holes}
    assert not unknown, unknown
    return np.array([_value(hole, choices.get(hole.name.replace(".", "__"))) for hole in sketch.holes], dtype=np.int64)


def _value(hole: Hole, choice: int | tuple[int, ...] | None) -> int:
    if hole.table is None:
        return 0 if choice is None else hole.choices.index(choice)
    if choice is None:
        return int(np.lexsort(hole.table.trips.T)[-1])
    (found,) = np.flatnonzero((hole.table.trips == choice).all(axis=1))
    return int(found)
