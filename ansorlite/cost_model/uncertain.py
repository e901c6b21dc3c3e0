"""Models that also say how sure they are: what they predict is a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.boosting import ForestSettings
from ansorlite.cost_model.gbdt import GBDT
from ansorlite.cost_model.protocol import CostModel, Group

#: ``(n,)`` mean and standard deviation.
Estimate: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


@runtime_checkable
class Uncertain(CostModel, Protocol):
    """A cost model that knows how much it does not know."""

    def estimate(self, features: NDArray[np.float64]) -> Estimate:
        """``(n, statements, features)`` to the mean of each score, which is what :meth:`predict` says, and its deviation."""
        ...


#: Each tree is grown on a sample of the programs, and their mean counts (AdaTune, NeurIPS 2020: 10 trees).
RANDOM_FOREST: ForestSettings = ForestSettings(trees=1, leaves=32, learning_rate=1.0, feature_fraction=0.6, min_leaf=1)


class Bagged:
    """An :class:`Uncertain` model: several forests, each of a bootstrap sample of the programs.

    Their mean is the score, their standard deviation how sure that is. Where nothing ran, both are 0.
    """

    def __init__(self, rng: np.random.Generator, members: int = 10, settings: ForestSettings = RANDOM_FOREST) -> None:
        self._rng = rng
        self._members = [GBDT(settings) for _ in range(members)]

    def fit(self, groups: Sequence[Group], offsets: Sequence[NDArray[np.float64]] | None = None) -> None:
        """Train all from scratch; with ``offsets`` as :meth:`GBDT.fit`."""
        start = [np.zeros(len(group.latencies)) for group in groups] if offsets is None else offsets
        for member in self._members:
            drawn = [_bootstrap(group.latencies, self._rng) for group in groups]
            sample = [group.take(rows) for group, rows in zip(groups, drawn, strict=True)]
            begins = None if offsets is None else [each[rows] for each, rows in zip(start, drawn, strict=True)]
            member.fit(sample, begins)

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.estimate(features)[0]

    def estimate(self, features: NDArray[np.float64]) -> Estimate:
        every = np.stack([member.predict(features) for member in self._members])
        return every.mean(axis=0), every.std(axis=0)


def _bootstrap(latencies: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Positions drawn with replacement, but the fastest always: it is the yardstick of the labels."""
    rows = rng.integers(len(latencies), size=len(latencies)) if len(latencies) else np.zeros(0, np.int64)
    if len(rows):
        rows[0] = latencies.argmin()
    return rows
