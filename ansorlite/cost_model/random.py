"""Scores drawn at random: the baseline that every model must beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.protocol import Group


class RandomModel:
    """A :class:`~ansorlite.cost_model.protocol.CostModel` that knows nothing and learns nothing."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def fit(self, groups: Sequence[Group]) -> None:
        """Nothing is learnt."""

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._rng.random(len(features))
