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


def mean_peak(scores: NDArray[np.float64], latencies: NDArray[np.float64], k: int) -> float:
    """TenSet's "average peak score at k": the mean of :func:`peak_score` over 1, 2, ..., ``k``. At most ``peak_score``."""
    chosen = latencies[np.argsort(-scores, kind="stable")[:k]]
    return float(np.mean(latencies.min(initial=np.inf) / np.minimum.accumulate(chosen))) if len(chosen) else 0.0


def recall(scores: NDArray[np.float64], latencies: NDArray[np.float64], k: int) -> float:
    """Of the ``k`` fastest programs that ran, the share that is among the ``k`` of the highest score."""
    fastest = np.argsort(latencies, kind="stable")[:k]
    fastest = fastest[np.isfinite(latencies[fastest])]
    chosen = np.argsort(-scores, kind="stable")[:k]
    return float(np.isin(fastest, chosen).mean()) if len(fastest) else float("nan")


def root_mean_square_error(scores: NDArray[np.float64], latencies: NDArray[np.float64]) -> float:
    """Of the best speed's share (0 where a program failed), from the straight line of it over scores that fits best.

    Scores have no unit, and some models only rank: the line gives them one. Constant scores leave the deviation of the shares.
    NaN when a score is infinite.
    """
    if not np.isfinite(scores).all():
        return float("nan")
    shares = np.divide(latencies.min(initial=np.inf), latencies, out=np.zeros(len(latencies)), where=np.isfinite(latencies))
    line = np.stack([scores - scores.mean(), np.ones(len(scores))], axis=1)
    fitted = line @ np.linalg.lstsq(line, shares, rcond=None)[0]
    return float(np.sqrt(np.mean((fitted - shares) ** 2)))
