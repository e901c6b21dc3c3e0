"""A bandit over tasks with learning curves (DynaTune: Zhang et al., ICLR 2021): a share goes where it is expected to give most,
and where that is least sure."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.task_scheduler.forecast import is_judged
from ansorlite.task_scheduler.gradient import GradientScheduler

#: Curves are fitted to so many resampled histories.
_FITS: Final = 30
#: How many deviations of the expected fall count on top of it.
_OPTIMISM: Final = 1.0
_PACES: Final = np.array([0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 5.0])


class CurveBandit(GradientScheduler):
    """A scheduler that takes the objective's derivatives as :class:`GradientScheduler` does, but extrapolates each task's curve.

    The index of a task is the mean fall of the next share over curves fitted to bootstrap samples of its history, and a deviation
    of it. Before four shares it is as optimistic as Ansor's guess. There, Markov chains draw the curves' parameters.
    """

    def _change(self, task: int) -> float:
        curve = self._curves[task]
        if not is_judged(curve.after):
            return super()._change(task)
        mean, deviation = expected(tuple(curve.after))
        fall = -curve.best * (mean + _OPTIMISM * deviation)
        # By the second, where it is known: a share of a slow task costs more.
        return fall * self._mean_seconds() * curve.shares / curve.seconds if self._timed else fall

    @property
    def _timed(self) -> bool:
        return all(curve.seconds > 0 for curve in self._curves if curve.shares)

    def _mean_seconds(self) -> float:
        """Of a share of any task."""
        return math.fsum(curve.seconds for curve in self._curves) / max(1, sum(curve.shares for curve in self._curves))


@lru_cache(4096)
def expected(after: tuple[float, ...]) -> tuple[float, float]:
    """By which share of itself the best latency falls with the next share: mean and deviation over fitted curves.

    The logarithm of the best is ``a + b g(t)`` with ``b >= 0`` and ``g`` one of ``t^-p``, ``(1 + ln t)^-p``, ``e^(-p t / 4)``.
    For each ``g`` that is a straight line, fitted in closed form; ``g`` counts by how near its line is (by exp(-error / 2
    variance)).

    Args:
        after: the best latency after each share; the last few finite.
    """
    values = np.log([each for each in after if math.isfinite(each)])
    n = len(values)
    t = np.arange(len(after) - n + 1, len(after) + 2, dtype=np.float64)
    shapes = np.concatenate(
        [t[None] ** -_PACES[:, None], (1 + np.log(t))[None] ** -_PACES[:, None], np.exp(-_PACES[:, None] * t[None] / 4)]
    )
    seen, coming = shapes[:, :-1], shapes[:, -1]
    # Recent shares say more of what is to come; resampling is by weights, whose generator is the same every time.
    recent = 0.9 ** np.arange(n)[::-1]
    weights = np.random.default_rng(0).exponential(size=(_FITS, n)) * recent
    weights /= weights.sum(axis=1, keepdims=True)
    falls = _falls(seen, coming, values, weights)
    return float(falls.mean()), float(falls.std())


def _falls(
    seen: NDArray[np.float64], coming: NDArray[np.float64], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``(fits,)``: the fall that each resampled history makes expected, over all shapes (shapes, n)."""
    mean_x, mean_y = weights @ seen.T, weights @ values
    covariance = (weights * values) @ seen.T - mean_x * mean_y[:, None]
    variance = weights @ (seen**2).T - mean_x**2
    slope = np.maximum(covariance / np.maximum(variance, 1e-12), 0.0)
    spread = weights @ values**2 - mean_y**2
    error = np.maximum(spread[:, None] - 2 * slope * covariance + slope**2 * variance, 0.0)
    scale = np.maximum(error.min(axis=1, keepdims=True), 1e-6)
    likely = np.exp(-0.5 * len(values) * (error - error.min(axis=1, keepdims=True)) / scale)
    likely /= likely.sum(axis=1, keepdims=True)
    # From where the curve is, not from where the best is: luck in the past does not make the future worse.
    fall = -np.expm1(-slope * np.maximum(seen[:, -1] - coming, 0.0)[None])
    return np.asarray((likely * fall).sum(axis=1))
