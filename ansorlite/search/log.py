"""What a search tells of its rounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RoundLog:
    """One proposal and what came of it.

    Attributes:
        round: from 0.
        proposed: candidates proposed.
        by_sketch: of these, for each sketch; in the order of the problem.
        explored: of these, at random instead of by score.
        scored: programs that the cost model scored.
        trained_on: measured programs that the cost model was fitted to.
        measured, failed: results that came back so far, and those of them without a latency.
        rank_correlation: Spearman's, of predicted scores with measured speed, over this round's candidates; NaN where
            there is none, for example when all scores are equal.
        best: the lowest latency so far, seconds; ``inf`` before any.
        fit_seconds, search_seconds: time spent on fitting the model, and on breeding and scoring.
    """

    round: int
    proposed: int
    by_sketch: tuple[int, ...]
    explored: int
    scored: int
    trained_on: int
    measured: int
    failed: int
    rank_correlation: float
    best: float
    fit_seconds: float
    search_seconds: float
