"""Who becomes a parent, and which rows make a batch to measure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def best_first(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The positions of ``scores`` from the highest to the lowest; ties keep their order."""
    return np.argsort(-scores, kind="stable")


def tournament(scores: NDArray[np.float64], n: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``n`` positions, each the best of ``size`` drawn at random with replacement."""
    entrants = rng.integers(len(scores), size=(n, size))
    winners: NDArray[np.int64] = entrants[np.arange(n), scores[entrants].argmax(axis=1)]
    return winners


def epsilon_greedy(n: int, ranked: int, epsilon: float) -> tuple[int, int]:
    """How many of a batch of ``n`` come from the best of ``ranked`` rows, and how many at random.

    The random share is ``epsilon`` of the batch rounded up, so that a small batch explores too, but a batch of one
    does not.
    """
    explored = min(int(np.ceil(epsilon * n)), n - 1) if n else 0
    greedy = min(n - explored, ranked)
    return greedy, n - greedy


def spread(rows: NDArray[np.int64], n: int, distance: int) -> NDArray[np.int64]:
    """Positions of ``n`` of the ``rows``, in order, that differ from one another in ``distance`` columns or more.

    When the rows do not have that many, the first of those left out fill the batch.
    """
    if distance <= 1:
        return np.arange(min(n, len(rows)))
    apart = np.ones(len(rows), bool)
    chosen: list[int] = []
    for position in range(len(rows)):
        if len(chosen) == n:
            break
        if apart[position]:
            chosen.append(position)
            apart &= (rows != rows[position]).sum(axis=1) >= distance
    rest = np.setdiff1d(np.arange(len(rows)), chosen)[: n - len(chosen)]
    return np.sort(np.concatenate([np.asarray(chosen, np.int64), rest]))
