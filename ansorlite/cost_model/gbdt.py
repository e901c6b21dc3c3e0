"""Gradient-boosted trees on statements, summed over each program (Ansor's cost model, OSDI 2020, section 5.2).

The trees score a statement; a program's score is the sum over its statements; only the program has a label. The loss is
``sum over programs of w (sum over statements of f - y)^2`` with y the relative throughput and w = y, so that telling
the good from the best matters and telling the bad from the worst does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import lightgbm
import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.forest import Forest
from ansorlite.cost_model.protocol import Group, relative_throughput


@dataclass(frozen=True)
class GBDTSettings:
    """The shape of the forest. Many small trees: on synthetic programs, 8 leaves ranked better than 16 or 31, at any size.

    Attributes:
        trees, leaves: how many trees, and the most leaves of one (32 can be evaluated).
        learning_rate: how much of each Newton step is taken.
        feature_fraction: the share of the features that one tree may use.
        min_leaf: the fewest statements in a leaf.
        bins: into how many values a feature is cut for training.
        least_weight: the weight of failed and very slow programs, above 0; near 0 nothing is learnt from failures.
        seed: of the feature subsets.
    """

    trees: int = 80
    leaves: int = 8
    learning_rate: float = 0.3
    feature_fraction: float = 0.7
    min_leaf: int = 5
    bins: int = 63
    least_weight: float = 0.05
    seed: int = 0


class GBDT:
    """A :class:`~ansorlite.cost_model.protocol.CostModel`: flat zeros until it is fitted on a program that ran."""

    def __init__(self, settings: GBDTSettings = GBDTSettings()) -> None:
        self._settings = settings
        self._forest: Forest | None = None
        self._mean = 0.0

    def fit(self, groups: Sequence[Group], offsets: Sequence[NDArray[np.float64]] | None = None) -> None:
        """Train from scratch. With ``offsets``, one ``(n,)`` array a group, learn what is missing from them to the labels.

        Raises:
            ValueError: a feature that is not finite.
        """
        self._forest, self._mean = None, 0.0
        groups = [group for group in groups if group.features.size]
        if not all(np.isfinite(group.features).all() for group in groups):
            raise ValueError("a statement feature is infinite or not a number; features must be finite")
        labels = np.concatenate([np.zeros(0), *relative_throughput(groups)])
        if not labels.any():
            return
        weights = np.maximum(labels, self._settings.least_weight)
        # The trees are drawn towards 0; they should be drawn towards knowing nothing, which is the mean.
        self._mean = float(np.average(labels, weights=weights)) if offsets is None else 0.0
        start = np.full(len(labels), self._mean) if offsets is None else np.concatenate(offsets)
        booster = lightgbm.train(
            {**self._parameters(), "objective": _objective(groups, labels, weights, start)},
            self._dataset(groups),
            num_boost_round=self._settings.trees,
        )
        self._forest = Forest.of(booster.dump_model())

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(len(features)) if self._forest is None else self._mean + self._forest.predict(features)

    def _parameters(self) -> dict[str, object]:
        s = self._settings
        return {
            "num_leaves": s.leaves,
            "learning_rate": s.learning_rate,
            "feature_fraction": s.feature_fraction,
            "min_data_in_leaf": s.min_leaf,
            # Half of one statement's: LightGBM guesses counts from Hessians, and aborts on a leaf that proves empty.
            "min_sum_hessian_in_leaf": 0.5 * s.least_weight,
            "lambda_l2": 1.0,
            "max_bin": s.bins,
            "min_data_in_bin": 1,
            "bin_construct_sample_cnt": 2000,
            "feature_pre_filter": False,
            "use_missing": False,
            "enable_bundle": False,
            "seed": s.seed,
            "deterministic": True,
            # With a feature fraction, by columns is the faster (0.17 s against 0.23 s for 2,000 programs of 5 statements).
            "force_col_wise": True,
            # On a busy machine OpenMP's spinning threads make training ten times slower, not faster.
            "num_threads": 1,
            "verbose": -1,
        }

    def _dataset(self, groups: Sequence[Group]) -> lightgbm.Dataset:
        # float32, because that is what the compiled forest compares.
        rows = [group.features.reshape(-1, group.features.shape[2]).astype(np.float32) for group in groups]
        return lightgbm.Dataset(np.concatenate(rows), params=self._parameters())


def _objective(
    groups: Sequence[Group], labels: NDArray[np.float64], weights: NDArray[np.float64], start: NDArray[np.float64]
) -> object:
    statements = np.repeat([group.features.shape[1] for group in groups], [len(group.features) for group in groups])
    program = np.repeat(np.arange(len(labels)), statements)
    # All statements of a program move at once: the curvature along that move, shared among them, is w times their
    # number. With w alone the step would be too long by that factor, and diverge for programs of many statements.
    hessian = (weights * statements)[program]

    def gradient(scores: NDArray[np.float64], _: lightgbm.Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        total = start + np.bincount(program, scores, len(labels))
        return ((total - labels) * weights)[program], hessian

    return gradient
