"""What other tasks taught, as the ground that a task's own trees start from (AutoTVM's transfer: Chen et al., NeurIPS 2018;
apache/tvm v0.14, ``autotvm/tuner/xgboost_cost_model.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.gbdt import GBDT
from ansorlite.cost_model.protocol import CostModel, Group

#: With so many programs of the task itself measured, what others taught counts half as much.
HALVED: Final = 64
#: Below this share it is left out.
LEAST: Final = 0.05
#: Of fewer programs there is nothing to be learnt for others.
ENOUGH: Final = 500


class BasedModel:
    """A :class:`~ansorlite.cost_model.protocol.CostModel` of one task: what a base says, the less the more programs of the task
    itself were measured, and trees that learn what is missing from that.

    Before anything is measured the base alone ranks.
    """

    def __init__(self, base: CostModel, trees: GBDT | None = None) -> None:
        """``base`` was fitted to other tasks: its scores are shares of the best speed of a task, as trees' are."""
        self._base = base
        self._trees = GBDT() if trees is None else trees
        self._weight = 1.0

    def fit(self, groups: Sequence[Group]) -> None:
        weight = 2.0 ** (-sum(len(group.latencies) for group in groups) / HALVED)
        self._weight = weight if weight >= LEAST else 0.0
        known = [group for group in groups if group.features.size]
        self._trees.fit(known, [self._ground(group.features) for group in known] if self._weight else None)

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._ground(features) + self._trees.predict(features)

    def _ground(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._weight * self._base.predict(features) if self._weight else np.zeros(len(features))
