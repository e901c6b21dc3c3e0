"""Trees that learn an order instead of speeds: AutoTVM's other loss, ``"rank"`` (Chen et al., NeurIPS 2018; apache/tvm v0.14,
``autotvm/tuner/xgboost_cost_model.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.boosting import ForestSettings, boost, prepare
from ansorlite.cost_model.forest import Forest
from ansorlite.cost_model.protocol import Group, relative_throughput

Floats = NDArray[np.float64]

#: AutoTVM's: 3 levels deep, so 8 leaves at most, at a rate of 0.3. There, up to 8,000 of them, until the recall of the best
#: rises no more.
RANK_TREES: Final = ForestSettings(trees=80, leaves=8, learning_rate=0.3, feature_fraction=1.0, min_leaf=1)
#: So many pairs each program is in, drawn anew for each tree: all of them would be its square.
_PAIRS: Final = 16


class RankedTrees:
    """A :class:`~ansorlite.cost_model.protocol.CostModel`: boosted trees whose sums order the programs of a task (RankNet's loss,
    each pair weighted by how far the speeds are apart). Flat zeros until it is fitted on a program that ran.
    """

    def __init__(self, settings: ForestSettings = RANK_TREES) -> None:
        prepare()
        self._settings = settings
        self._forest: Forest | None = None

    def fit(self, groups: Sequence[Group]) -> None:
        """Train from scratch.

        Raises:
            ValueError: a feature that is not finite.
        """
        self._forest = None
        groups = [group for group in groups if group.features.size]
        labels = np.concatenate([np.zeros(0), *relative_throughput(groups)])
        if not labels.any():
            return
        tasks = {task: number for number, task in enumerate(dict.fromkeys(group.task for group in groups))}
        of_each = np.repeat([tasks[group.task] for group in groups], [len(group.latencies) for group in groups])
        order = np.argsort(of_each, kind="stable")
        ends = np.searchsorted(of_each[order], np.arange(len(tasks) + 1))
        lists = [order[begin:end] for begin, end in pairwise(ends.tolist())]
        rng = np.random.default_rng(self._settings.seed)

        def errors(sums: Floats) -> Floats:
            found = np.zeros(len(sums))
            for own in lists:
                found[own] = _pulls(sums[own], labels[own], rng)
            return found

        self._forest = boost(groups, np.ones(len(labels)), errors, self._settings)

    def predict(self, features: Floats) -> Floats:
        return np.zeros(len(features)) if self._forest is None else self._forest.predict(features)


def _pulls(sums: Floats, labels: Floats, rng: np.random.Generator) -> Floats:
    """``(n,)``: the slope of the loss by each program's sum: below 0 where it should be higher than the others it is paired
    with."""
    found = np.zeros(len(sums))
    for _ in range(min(_PAIRS, len(sums) - 1)):
        other = rng.permutation(len(sums))
        apart = labels - labels[other]
        better = np.sign(apart)
        pull = better * np.abs(apart) / (1.0 + np.exp(better * (sums - sums[other])))
        found -= pull
        # Each pair pulls both.
        np.add.at(found, other, pull)
    return 4.0 * found / max(1, 2 * min(_PAIRS, len(sums) - 1))
