"""How the sketches of a task share a batch: a bandit that is after the best program, not the best average.

A sketch earns by putting programs among the few fastest of the whole task, as in threshold ascent (Streeter and Smith,
CP 2006): the threshold rises by itself as better programs are found. The shares are drawn by Thompson sampling: a sketch
with few trials has a wide belief and is tried again, one whose trials never reach the top fades, none is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: What counts as the top of a task: this share of all its trials, but at least so many.
_TOP_SHARE: Final = 0.2
_TOP_LEAST: Final = 4
#: Trials that each sketch gets before it is judged.
_WARM_UP: Final = 2


def shares(latencies: Sequence[NDArray[np.float64]], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of ``n`` trials each sketch gets.

    Args:
        latencies: of each sketch, its trials so far in seconds; ``inf`` where one failed.
        n: at least 0; the shares sum to it.
        rng: the beliefs are drawn from it.
    """
    trials = np.asarray([len(each) for each in latencies])
    result = np.zeros(len(latencies), np.int64)
    while (left := n - int(result.sum())) > 0 and (new := np.flatnonzero(trials + result < _WARM_UP)).size:
        result[new[:left]] += 1
    left = n - int(result.sum())
    every = np.concatenate([np.zeros(0), *latencies])
    ran = np.sort(every[np.isfinite(every)])
    top = ran[: max(_TOP_LEAST, int(np.ceil(_TOP_SHARE * len(every))))]
    threshold = top[-1] if len(top) else -np.inf
    wins = np.asarray([np.count_nonzero(each <= threshold) for each in latencies])
    beliefs = rng.beta(1 + wins, 1 + trials - wins, size=(left, len(latencies)))
    result += np.bincount(beliefs.argmax(axis=1), minlength=len(latencies))
    return result
