"""One model for all tasks of a run, as Ansor has it (OSDI 2020; apache/tvm v0.14, ``auto_scheduler/cost_model``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.boosting import ForestSettings
from ansorlite.cost_model.gbdt import GBDT
from ansorlite.cost_model.protocol import CostModel, Group
from ansorlite.cost_model.views import View, view_of

#: Ansor's trees are 10 levels deep and learn at a rate of 0.2; here one has 32 leaves at most, and they are 100.
ANSOR_TREES: Final = ForestSettings(trees=100, leaves=32, learning_rate=0.2, feature_fraction=1.0, min_leaf=1)
#: Before there are so many records of all tasks, Ansor's model says nothing and its search is random.
WARM_UP: Final = 100


class Pool:
    """What all tasks have measured, and the model, trees by default, that is fitted to all of it."""

    def __init__(self, settings: ForestSettings = ANSOR_TREES, warm_up: int = WARM_UP, model: CostModel | None = None) -> None:
        """``model``: what is fitted; if ``None``, trees of these ``settings``."""
        self.model = GBDT(settings) if model is None else model
        self._warm_up = warm_up
        self._groups: dict[str, list[Group]] = {}

    def fit(self, task: str, groups: Sequence[Group]) -> None:
        """Take what ``task`` has measured in the place of what was known of it, and train from nothing."""
        self._groups[task] = [replace(group, task=task) for group in groups]
        every = [group for known in self._groups.values() for group in known]
        enough = sum(len(group.latencies) for group in every) >= self._warm_up
        self.model.fit(every if enough else [])

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.model.predict(features)


class SharedModel:
    """A :class:`~ansorlite.cost_model.protocol.CostModel` of one task, which shares a :class:`Pool` with those of others."""

    def __init__(self, pool: Pool, task: str) -> None:
        """``task`` is the name of the task in the pool."""
        self._pool = pool
        self._task = task

    @property
    def view(self) -> View:
        """What the pool's model looks at."""
        return view_of(self._pool.model)

    def fit(self, groups: Sequence[Group]) -> None:
        self._pool.fit(self._task, groups)

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._pool.predict(features)
