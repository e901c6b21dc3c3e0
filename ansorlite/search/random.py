"""Random search: the baseline that every strategy must beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows


class RandomSearch(MeasuredSearch):
    """Draws a sketch, then a program of it, each at random."""

    def split(self, arms: Sequence[Arm], n: int) -> NDArray[np.int64]:
        return np.bincount(self._rng.integers(len(arms), size=n), minlength=len(arms))

    def choose(self, arm: Arm, _: int) -> Rows:
        """None: what is left open is drawn at random."""
        return arm.rows[:0]
