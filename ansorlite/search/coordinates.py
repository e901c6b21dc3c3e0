"""Where the values of each hole lie among the coordinates of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.sketch.space import Space

Rows: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HoleCoordinates:
    """Of one hole.

    Attributes:
        columns: those of :meth:`Space.embed` that its value decides.
        values: ``(size, len(columns))``: what they are, for each value.
    """

    columns: Rows
    values: Floats


def coordinates(space: Space, row: Rows) -> tuple[HoleCoordinates, ...]:
    """Of each hole, seen from ``row``, ``(holes,)``."""
    found = []
    for hole, size in enumerate(space.sizes.tolist()):
        rows = np.repeat(row[None], size, axis=0)
        rows[:, hole] = np.arange(size)
        points = space.embed(rows)
        columns = np.flatnonzero(np.ptp(points, axis=0) > 0)
        found.append(HoleCoordinates(columns, points[:, columns]))
    return tuple(found)


def nearest(holes: tuple[HoleCoordinates, ...], points: Floats) -> Rows:
    """``(n, holes)``: the values whose coordinates are nearest to those of ``points`` (n, d), hole by hole."""
    rows = np.zeros((len(points), len(holes)), np.int64)
    for hole, each in enumerate(holes):
        for at, point in enumerate(points[:, each.columns]):
            rows[at, hole] = np.argmin(((each.values - point) ** 2).sum(axis=1))
    return rows
