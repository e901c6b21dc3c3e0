"""Scores drawn at random: the baseline that every model must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.protocol import Group
from ansorlite.cost_model.uncertain import Estimate

#: Of a number that is uniform from 0 to 1.
_DEVIATION: Final = 12**-0.5


class RandomModel:
    """A :class:`~ansorlite.cost_model.protocol.CostModel` that knows nothing and learns nothing."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def fit(self, groups: Sequence[Group]) -> None:
        """Nothing is learnt."""

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._rng.random(len(features))

    def estimate(self, features: NDArray[np.float64]) -> Estimate:
        """What it says, and how far that is from the mean of all that it might say."""
        return self.predict(features), np.full(len(features), _DEVIATION)
