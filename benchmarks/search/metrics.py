"""What a strategy's run over a table comes to, beside random search, whose course over a table is known exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from benchmarks.search.table import Table

Floats = NDArray[np.float64]

#: The numbers of trials that pages show.
AT = (8, 16, 32, 64)


def programs(table: Table) -> Floats:
    """Seconds of each program, ascending; a failure takes as long as the slowest program."""
    _, first = np.unique(table.key, return_index=True)
    seconds = table.seconds[first].astype(np.float64)
    return np.sort(np.minimum(seconds, slowest(table)))


def slowest(table: Table) -> float:
    """Seconds of the slowest program that has a time: what stands for one that failed."""
    return float(table.seconds[np.isfinite(table.seconds)].max())


def expected_best(seconds: Floats, trials: int) -> Floats:
    """``(trials,)``: the best of 1, 2, ... programs drawn at random without repetition, expected exactly.

    ``sum over j of t_(j) C(N - j, k - 1) / C(N, k)``, with the times in ascending order; from ``N`` draws on it is the least.
    """
    n = len(seconds)
    result = np.full(trials, seconds[0])
    rest = n - 1 - np.arange(n)  # programs slower than each
    for k in range(1, min(trials, n) + 1):
        able = rest >= k - 1
        with np.errstate(invalid="ignore"):
            log = _choose(rest[able], k - 1) - _choose(np.array([n]), k)
        result[k - 1] = float(np.exp(log) @ seconds[able])
    return result


def _choose(n: NDArray[np.int64], k: int) -> Floats:
    """The logarithm of the binomial coefficient."""
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), np.float64)


def best_so_far(bests: Sequence[tuple[int, float]], trials: int, worst: float) -> Floats:
    """``(trials,)``: the best of the first 1, 2, ... of a run; ``worst`` before anything ran.

    Args:
        bests: the number of each trial that was faster than all before it, from 1, and its seconds.
    """
    result = np.full(trials, worst)
    for number, seconds in bests:
        result[number - 1 :] = min(seconds, worst)
    return result


def score(run: Floats, random: Floats, best: float, until: int = 64) -> float:
    """1: the best at once; 0: as random search is expected to do; below 0: worse. The mean over trials up to ``until``.

    Trials at which random search is expected to have the best say nothing, and are left out.
    """
    run, random = run[:until], random[:until]
    open_ = random > best * (1 + 1e-6)
    if not open_.any():
        return 0.0
    return float(np.mean((random[open_] - run[open_]) / (random[open_] - best)))


def trials_to(run: Floats, best: float, share: float) -> int | None:
    """The number of trials after which ``share`` of the best speed was reached; ``None``: it was not."""
    reached = np.flatnonzero(best / run >= share)
    return int(reached[0]) + 1 if len(reached) else None


def hard_enough(table: Table) -> bool:
    """Whether strategies can differ on it: random search is far from the best after 64 trials, and few programs are near it."""
    seconds = programs(table)
    near = float(np.mean(seconds <= seconds[0] / 0.9))
    return bool(seconds[0] / expected_best(seconds, 64)[-1] <= 0.93 and 0.0002 <= near <= 0.02)
