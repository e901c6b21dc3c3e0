"""The closed-form prior alone: nothing is learnt from measurements (Tuna: Wang et al., arXiv 2104.14641)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.protocol import Group, Prior


class PriorOnly:
    """A :class:`~ansorlite.cost_model.protocol.CostModel` that says what its prior says."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior

    def fit(self, groups: Sequence[Group]) -> None:
        """Nothing is learnt."""

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._prior(features)
