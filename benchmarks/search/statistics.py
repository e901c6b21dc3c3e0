"""Whether one preset is better than another, or luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import mannwhitneyu, wilcoxon

#: A difference of medians that counts as one.
MUCH = 0.02
#: The chance of luck below which a difference is believed.
LEVEL = 0.01


def faster(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """One-sided Mann-Whitney: the chance that luck alone makes ours so much smaller. 1 where all are equal."""
    if len({*ours, *theirs}) == 1:
        return 1.0
    return float(mannwhitneyu(ours, theirs, alternative="less").pvalue)


def beats(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """On one table, by the best seconds of each seed."""
    return faster(ours, theirs) < LEVEL


def worse(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether ours is much slower in the median."""
    return float(np.median(ours)) > (1 + MUCH) * float(np.median(theirs))


def over_tables(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Two-sided Wilcoxon over tables, of one number a table each; 1 where nothing differs."""
    differences = np.asarray(ours) - np.asarray(theirs)
    return float(wilcoxon(differences).pvalue) if differences.any() else 1.0


def holm(chances: Mapping[str, float]) -> dict[str, float]:
    """The same chances, made larger so that one of many comparisons does not count by luck (Holm, 1979)."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    for rank, name in enumerate(sorted(chances, key=lambda each: chances[each])):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[name]))
        adjusted[name] = largest
    return adjusted


def interval(values: Sequence[float], seed: int = 0, draws: int = 1000) -> tuple[float, float]:
    """Bootstrap: the median of the values lies within, with 95 %."""
    found = np.asarray(values, np.float64)
    drawn = found[np.random.default_rng(seed).integers(len(found), size=(draws, len(found)))]
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return float(low), float(high)
