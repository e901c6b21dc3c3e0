"""A quantity that was measured many times."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A median and its quartiles."""

    low: float
    median: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
        return Spread(low, statistics.median(values), high)


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> Spread:
    """How many times as fast ours is, round by round."""
    return Spread.of([their / our for their, our in zip(theirs, ours, strict=True)])
