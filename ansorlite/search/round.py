"""The book-keeping of one round of a search: what was expected of each candidate, and what came."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ansorlite.cost_model import rank_correlation
from ansorlite.search.log import RoundLog


@dataclass
class Round:
    """A proposal that results are still coming in for.

    Attributes:
        predicted: score by (sketch, key) of every candidate proposed.
        measured: latency by (sketch, key), of those that came back; ``inf`` for a failure.
    """

    number: int
    sketches: int
    explored: int = 0
    scored: int = 0
    trained_on: int = 0
    fit_seconds: float = 0.0
    search_seconds: float = 0.0
    best: float = np.inf
    reported: bool = False
    predicted: dict[tuple[int, bytes], float] = field(default_factory=dict)
    measured: dict[tuple[int, bytes], float] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.measured) == len(self.predicted)

    def log(self) -> RoundLog:
        latencies = np.asarray(list(self.measured.values()), np.float64)
        scores = np.asarray([self.predicted[each] for each in self.measured], np.float64)
        return RoundLog(
            round=self.number,
            proposed=len(self.predicted),
            by_sketch=tuple(np.bincount([sketch for sketch, _ in self.predicted], minlength=self.sketches).tolist()),
            explored=self.explored,
            scored=self.scored,
            trained_on=self.trained_on,
            measured=len(latencies),
            failed=int(np.count_nonzero(np.isinf(latencies))),
            rank_correlation=rank_correlation(scores, latencies),
            best=self.best,
            fit_seconds=self.fit_seconds,
            search_seconds=self.search_seconds,
        )
