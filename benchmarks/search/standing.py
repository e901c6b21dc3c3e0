"""What the runs of a preset on a table come to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.search import metrics
from benchmarks.search.results import Judged
from benchmarks.search.table import Table


@dataclass(frozen=True)
class OnTable:
    """The runs of one preset on one table."""

    table: Table
    runs: tuple[Judged, ...]
    trials: int

    @cached_property
    def best_so_far(self) -> NDArray[np.float64]:
        """``(seeds, trials)``"""
        worst = metrics.slowest(self.table)
        return np.stack([metrics.best_so_far(run.bests, self.trials, worst) for run in self.runs])

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """``(trials,)``: s(k)."""
        return np.median(self.table.best / self.best_so_far, axis=0)

    def after(self, trials: int) -> list[float]:
        """Of each seed, seconds of the best of so many trials."""
        return [float(value) for value in self.best_so_far[:, trials - 1]]

    @property
    def finals(self) -> list[float]:
        """Of each seed, seconds of the best."""
        return self.after(self.trials)

    @cached_property
    def score(self) -> float:
        """The median over seeds."""
        random = metrics.expected_best(metrics.programs(self.table), self.trials)
        return float(np.median([metrics.score(run, random, self.table.best) for run in self.best_so_far]))

    def median_to(self, share: float) -> float:
        """Trials until a share of the best speed is reached, the median over seeds; infinite where most do not reach it."""
        reached = [metrics.trials_to(run, self.table.best, share) for run in self.best_so_far]
        return float(np.median([math.inf if each is None else each for each in reached]))


#: By preset and table.
Found = Mapping[tuple[str, str], OnTable]
