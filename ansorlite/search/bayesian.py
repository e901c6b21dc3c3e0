"""Bayesian optimisation with a Gaussian process (Willemsen et al., PMBS 2021; Kernel Tuner's ``bayes_opt``). Needs the extra
``search``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ansorlite import lazy
from ansorlite.cost_model import CostModel
from ansorlite.evolution import best_first
from ansorlite.search.acquisition import Numbers, expected_improvement
from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows, new
from ansorlite.search.protocol import SearchProblem

if TYPE_CHECKING:
    from scipy import linalg
    from scipy.stats import qmc
    from sklearn import gaussian_process
    from sklearn.gaussian_process import kernels
else:
    linalg = lazy.module("scipy.linalg")
    qmc = lazy.module("scipy.stats.qmc")
    gaussian_process = lazy.module("sklearn.gaussian_process")
    kernels = lazy.module("sklearn.gaussian_process.kernels")


@dataclass(frozen=True)
class BayesianSettings:
    """
    Attributes:
        first: programs of a Latin hypercube before the process is asked.
        pool: so many programs are looked at for a batch: the neighbours of the best few, and random ones.
        length: the length of the Matern 3/2 kernel; 1 is how far apart the first and the last value of the longest hole are.
        believes: whether a batch is chosen one after another, each believed to do as expected; else those worth most.
        noise: of the logarithms of the times, added to the variance.
        most: the process is fitted to so many programs at most: the fastest, and the latest.
    """

    first: int = 20
    pool: int = 2048
    length: float = 1.5
    believes: bool = True
    noise: float = 1e-4
    most: int = 512


class BayesianSearch(MeasuredSearch):
    """The logarithm of the time is a Gaussian process of the row; what is expected to improve it most is measured.

    As there, coordinates are the positions of the values in their holes, on one scale for all holes: knobs in units of their
    deviations made the kernel three times as narrow, and the process knew of nothing but what is next to it. A batch is chosen
    one after another, the process believing what it expects of those before (kriging believer): the best few at once would be
    twins. What failed is not fitted. There, the exploration falls with the mean variance, and it is of the time itself; here,
    expected improvement is left as it is, and is of the logarithm.
    """

    def __init__(
        self,
        problem: SearchProblem,
        model: CostModel,
        rng: np.random.Generator,
        settings: BayesianSettings = BayesianSettings(),
    ) -> None:
        """
        Raises:
            ArgumentError: scikit-learn is not installed.
        """
        lazy.need("Bayesian optimisation", "sklearn", "search")
        super().__init__(problem, model, rng)
        self._settings = settings

    def choose(self, arm: Arm, n: int) -> Rows:
        settings = self._settings
        ran = np.flatnonzero(np.isfinite(arm.latencies))
        missing = min(n, settings.first - len(arm.latencies)) if len(ran) > 1 else n
        first = new(arm, self._hypercube(arm, missing))[:missing] if missing > 0 else arm.rows[:0]
        pool = self._pool(arm) if missing < n else first[:0]
        if not len(pool):
            return first
        order = ran[np.argsort(arm.latencies[ran], kind="stable")][: settings.most // 2]
        fitted = np.union1d(order, ran[-(settings.most // 2) :])
        scale = max(1, int(arm.space.sizes.max()) - 1)
        chosen = self._believed(arm.rows[fitted] / scale, -np.log(arm.latencies[fitted]), pool / scale, min(n, len(pool)))
        return np.concatenate([first, pool[chosen]])

    def _believed(self, known: Numbers, values: Numbers, pool: Numbers, n: int) -> list[int]:
        """Positions in the pool of those that are expected to improve most.

        What is believed is what is expected, which changes no mean; the variance falls by what each chosen one tells of the
        others.
        """
        noise = self._settings.noise
        values = (values - values.mean()) / (values.std() or 1.0)
        process: Any = gaussian_process.GaussianProcessRegressor(
            kernels.Matern(self._settings.length, nu=1.5), alpha=noise, optimizer=None
        ).fit(known, values)
        across = process.kernel_(known, pool)
        mean = across.T @ process.alpha_
        told = [linalg.solve_triangular(process.L_, across, lower=True)]  # each row tells so much of every program of the pool
        variance = np.maximum(1.0 - (told[0] ** 2).sum(axis=0), 0.0)
        if not self._settings.believes:
            worth = expected_improvement(mean, np.sqrt(variance), float(values.max()))
            return [int(at) for at in best_first(worth)[:n]]
        chosen: list[int] = []
        for _ in range(n):
            worth = expected_improvement(mean, np.sqrt(variance), float(values.max()))
            worth[chosen] = -np.inf
            best = int(worth.argmax())
            chosen.append(best)
            covariance = process.kernel_(pool, pool[[best]])[:, 0] - sum(rows.T @ rows[:, best] for rows in told)
            told.append((covariance / np.sqrt(variance[best] + noise))[None])
            variance = np.maximum(variance - told[-1][0] ** 2, 0.0)
        return chosen

    def _pool(self, arm: Arm) -> Rows:
        settings = self._settings
        near = [arm.space.neighbours(row) for row in arm.best(4)]
        drawn = arm.space.sample(settings.pool, self._rng)
        return new(arm, np.concatenate([*near, drawn]))[: settings.pool]

    def _hypercube(self, arm: Arm, n: int) -> Rows:
        """Rows of a Latin hypercube over the holes; those that are not valid are left out."""
        sizes = arm.space.sizes
        if not len(sizes):
            return arm.rows[:0]
        points = qmc.LatinHypercube(len(sizes), rng=self._rng).random(2 * n)
        rows: Rows = np.minimum((points * sizes).astype(np.int64), sizes - 1)
        return rows
