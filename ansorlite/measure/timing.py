"""Timing a program, and timing two side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeAlias

from ansorlite.measure.settings import MeasureSettings
from ansorlite.runtime.timing import TimingSettings, measure

#: A program that is bound to its arrays: runs it so many times in a row.
Call: TypeAlias = Callable[[int], None]


def once(call: Call) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call(1)
    return time.perf_counter() - start


def repeat(call: Call, calls: int) -> float:
    """Seconds of one call, as the mean of ``calls`` of them."""
    start = time.perf_counter()
    call(calls)
    return (time.perf_counter() - start) / calls


def calls_for(latency: float, settings: MeasureSettings) -> int:
    """How many calls make one repeat."""
    return max(1, round(settings.repeat_seconds / max(latency, 1e-7)))


def latency(call: Call, first: float, settings: MeasureSettings) -> float:
    """Seconds of one call: the median of the repeats.

    Args:
        first: what the first call took. A first call has cold caches and fresh pages, so it only counts when the
            program is so slow that another call would cost more than it tells.
    """
    if first >= settings.long_seconds:
        return first
    return measure(call, TimingSettings(0.0, settings.repeats, repeat_seconds=settings.repeat_seconds)).median


def slower(call: Call, first: float, best: float | None, settings: MeasureSettings) -> float | None:
    """The latency of a program that is far slower than ``best``, without more calls than that needs; ``None`` if it is not."""
    if best is None or first <= settings.slow_factor * best:
        return None
    if first > settings.hopeless_factor * best and first > settings.repeat_seconds:
        return first
    again = min(first, once(call))
    return again if again > settings.slow_factor * best else None


def side_by_side(ours: Call, theirs: Call, latencies: tuple[float, float], settings: MeasureSettings) -> tuple[float, float]:
    """The latencies of two programs, timed in turns, so that whatever else the machine does slows both alike.

    Args:
        latencies: of ours and theirs, as known before. If theirs is so much slower that noise cannot explain it, or
            takes long, one turn is enough.
    """
    our_calls, their_calls = (calls_for(latency, settings) for latency in latencies)
    clear = latencies[1] > settings.slow_factor * latencies[0] or latencies[1] >= settings.long_seconds
    pairs = []
    for turn in range(1 if clear else settings.repeats):
        if turn % 2:
            b = repeat(theirs, their_calls)
            a = repeat(ours, our_calls)
        else:
            a = repeat(ours, our_calls)
            b = repeat(theirs, their_calls)
        pairs.append((a, b))
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)
