"""Gradient-boosted trees on statements, summed over each program (Ansor's cost model, OSDI 2020, section 5.2).

The trees score a statement; a program's score is the sum over its statements; only the program has a label. The loss is
``sum over programs of w (sum over statements of f - y)^2`` with y the relative throughput and w = y, so that telling
the good from the best matters and telling the bad from the worst does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.boosting import ForestSettings, boost, prepare
from ansorlite.cost_model.forest import Forest
from ansorlite.cost_model.protocol import Group, relative_throughput

#: 8 leaves ranked better than 16 or 31 on synthetic programs, however many were measured.
SMALL_TREES: Final = ForestSettings(trees=80, leaves=8, learning_rate=0.3, feature_fraction=0.7, min_leaf=5)


class GBDT:
    """A :class:`~ansorlite.cost_model.protocol.CostModel`: flat zeros until it is fitted on a program that ran."""

    def __init__(self, settings: ForestSettings = SMALL_TREES, least_weight: float = 0.05, bounds: bool = False) -> None:
        """
        Args:
            least_weight: that of failed and very slow programs, above 0; near 0 nothing is learnt from failures.
            bounds: whether what a program was stopped at is no label but a bound: to expect it slower is no error.
        """
        prepare()
        self._settings = settings
        self._least_weight = least_weight
        self._bounds = bounds
        self._forest: Forest | None = None
        self._mean = 0.0

    def fit(self, groups: Sequence[Group], offsets: Sequence[NDArray[np.float64]] | None = None) -> None:
        """Train from scratch. With ``offsets``, one ``(n,)`` array a group, learn what is missing from them to the labels.

        Raises:
            ValueError: a feature that is not finite.
        """
        self._forest, self._mean = None, 0.0
        groups = [group for group in groups if group.features.size]
        labels = np.concatenate([np.zeros(0), *relative_throughput(groups)])
        if not labels.any():
            return
        weights = np.maximum(labels, self._least_weight)
        # The trees are drawn towards 0; they should be drawn towards knowing nothing, which is the mean.
        self._mean = float(np.average(labels, weights=weights)) if offsets is None else 0.0
        start = np.full(len(labels), self._mean) if offsets is None else np.concatenate(offsets)
        bounded = self._bounded(groups)

        def errors(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            off: NDArray[np.float64] = start + sums - labels
            return off if bounded is None else np.asarray(np.where(bounded, np.maximum(off, 0.0), off))

        self._forest = boost(groups, weights, errors, self._settings)

    def _bounded(self, groups: Sequence[Group]) -> NDArray[np.bool_] | None:
        """``(programs,)``: whose labels are bounds; ``None``: no one's."""
        if not self._bounds:
            return None
        known = [np.zeros(len(group.latencies), bool) if group.censored is None else group.censored for group in groups]
        return np.concatenate(known)

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(len(features)) if self._forest is None else self._mean + self._forest.predict(features)
