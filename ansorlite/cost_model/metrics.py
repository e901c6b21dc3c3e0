"""How well scores rank programs. Latencies of failed programs are ``inf``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rank_correlation(scores: NDArray[np.float64], latencies: NDArray[np.float64]) -> float:
    """Spearman's correlation of scores with speed: 1 is a perfect ranking, 0 is none; NaN when either is constant."""
    if len(scores) < 2 or np.ptp(scores) == 0 or (latencies == latencies[0]).all():
        return float("nan")
    return float(np.corrcoef(_ranks(scores), -_ranks(latencies))[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs. (Importing ``scipy.stats`` for it would take a second.)"""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def pairwise_accuracy(scores: NDArray[np.float64], latencies: NDArray[np.float64]) -> float:
    """The share of pairs of different latency that the scores order rightly; equal scores count half.

    NaN when no two latencies differ. Takes memory for all pairs.
    """
    faster = latencies[:, None] < latencies[None, :]
    if not faster.any():
        return float("nan")
    above = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    return float(above[faster].mean())


def peak_score(scores: NDArray[np.float64], latencies: NDArray[np.float64], k: int) -> float:
    """The best latency of all / the best latency among the ``k`` of the highest score: 1 if the model finds the best."""
    chosen = np.argsort(-scores, kind="stable")[:k]
    best = latencies[chosen].min(initial=np.inf)
    return float(latencies.min(initial=np.inf) / best) if np.isfinite(best) else 0.0
