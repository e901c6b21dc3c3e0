"""Timing two things side by side, so that whatever else the machine does slows both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: Calls before the first that counts: caches fill, threads start, pages are touched.
_WARM_UP: Final = 2
#: Calls that count, however long they take.
_LEAST: Final = 5


@dataclass(frozen=True)
class Comparison:
    """Median seconds of one call of ours and of the other."""

    ours: float
    against: float | None

    @property
    def ratio(self) -> float | None:
        """How many times faster ours is; below 1 where it is slower."""
        return None if self.against is None else self.against / self.ours


def time_alone(call: Callable[[], object], seconds: float) -> float:
    """Median seconds of one call, of as many calls as fit into ``seconds`` (five at least)."""
    return statistics.median(_rounds((call,), seconds)[0])


def compare(ours: Callable[[], object], other: Callable[[], object], seconds: float) -> Comparison:
    """Call both in turns for ``seconds`` (five times each at least)."""
    first, second = _rounds((ours, other), seconds)
    return Comparison(statistics.median(first), statistics.median(second))


def _rounds(calls: tuple[Callable[[], object], ...], seconds: float) -> list[list[float]]:
    for call in calls:
        for _ in range(_WARM_UP):
            call()
    taken: list[list[float]] = [[] for _ in calls]
    begin = time.perf_counter()
    while len(taken[0]) < _LEAST or time.perf_counter() - begin < seconds:
        for call, times in zip(calls, taken, strict=True):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return taken
