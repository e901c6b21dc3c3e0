"""Timing something that can be run many times in a row."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Timing:
    """How long one call takes, in seconds.

    Attributes:
        median, best: over the repeats.
        repeats: seconds per call in each repeat, in order.
    """

    median: float
    best: float
    repeats: tuple[float, ...] = field(repr=False)

    @staticmethod
    def of(repeats: list[float]) -> Timing:
        return Timing(statistics.median(repeats), min(repeats), tuple(repeats))


@dataclass(frozen=True)
class TimingSettings:
    """How thoroughly to measure.

    Attributes:
        min_seconds: measure at least this long in all, and
        min_repeats: at least this often, but
        max_repeats: no more.
        repeat_seconds: a repeat is as many calls in a row as fill this.
        limit: seconds per call beyond which a program is of no interest: measuring stops once it is clearly slower.
        flush_bytes: memory to overwrite before each repeat, which is then one call: times with cold caches. 0: none.
    """

    min_seconds: float = 0.1
    min_repeats: int = 5
    max_repeats: int = 1000
    repeat_seconds: float = 0.002
    limit: float | None = None
    flush_bytes: int = 0


#: How many times slower than the limit is clearly slower after one call.
_CLEARLY = 2.0


def measure(seconds: Callable[[int], float], settings: TimingSettings | None = None) -> Timing:
    """The time of one call of a program.

    The first call warms up, and is counted only if the program is so slow that it is stopped then.

    Args:
        seconds: makes so many calls in a row, and says how long they took.
    """
    settings = settings or TimingSettings()
    start = time.perf_counter()
    first = seconds(1)
    if settings.limit is not None and first > _CLEARLY * settings.limit:
        again = seconds(1)
        if again > _CLEARLY * settings.limit:
            return Timing.of([again])
    flush = np.zeros(settings.flush_bytes, np.uint8) if settings.flush_bytes else None
    calls = 1 if flush is not None else _calls(seconds, min(first, seconds(1)), settings)
    repeats: list[float] = []
    while len(repeats) < settings.max_repeats:
        if flush is not None:
            flush += 1
        repeats.append(seconds(calls) / calls)
        enough = len(repeats) >= settings.min_repeats and time.perf_counter() - start >= settings.min_seconds
        if enough or (settings.limit is not None and len(repeats) >= 3 and min(repeats) > _CLEARLY * settings.limit):
            break
    return Timing.of(repeats)


def _calls(seconds: Callable[[int], float], estimate: float, settings: TimingSettings) -> int:
    """How many calls fill a repeat; a short program is estimated again over many calls."""
    calls = max(1, int(settings.repeat_seconds / max(estimate, 1e-8)))
    if calls > 10:
        calls = max(1, int(settings.repeat_seconds / max(seconds(calls) / calls, 1e-8)))
    return calls


def wall_clock(run: Callable[[int], None], calls: int) -> float:
    """Seconds that ``run(calls)`` takes, which makes so many calls in a row."""
    start = time.perf_counter()
    run(calls)
    return time.perf_counter() - start
