"""Timing a program, and timing two in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from ansorlite.measure.settings import MeasureSettings
from ansorlite.runtime.timing import TimingSettings, measure

#: A program that is bound to its arrays: runs it so many times in a row.
Call: TypeAlias = Callable[[int], None]


#: A program that seems to be the best gets so many times the pairs of turns of another.
_CONFIRMED: Final = 3
#: It is believed to be as much faster as it was in this share of them.
_SURE: Final = 0.75
#: After so many pairs,
_FEW: Final = 3
#: a program that was so many times slower in each of them is timed no more.
_CLEARLY_SLOWER: Final = 1.2


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


def relative(ours: Call, theirs: Call, latencies: tuple[float, float], settings: MeasureSettings) -> float:
    """How many times the latency of ``theirs`` that of ``ours`` is: the median over pairs of turns, one for each.

    Neighbours on the same machine slow it for tenths of a second at a time: what lies within one pair suffers alike.
    A program that is clearly slower gets few pairs; one that seems to be faster has to stay so for three
    times as many, and counts as being as much faster as it was in three quarters of them.

    Args:
        latencies: of ours and theirs, roughly.
    """
    our_calls, their_calls = (calls_for(latency, settings) for latency in latencies)
    ratios: list[float] = []
    while True:
        if len(ratios) % 2:
            b = repeat(theirs, their_calls)
            a = repeat(ours, our_calls)
        else:
            a = repeat(ours, our_calls)
            b = repeat(theirs, their_calls)
        ratios.append(a / b)
        ratio = statistics.median(ratios)
        if len(ratios) >= settings.repeats * (_CONFIRMED if ratio < 1.0 else 1):
            # Luck is taken out of victories, or a row of lucky ones would make records faster than any program.
            return ratio if ratio >= 1.0 else min(1.0, float(np.quantile(ratios, _SURE)))
        if len(ratios) >= _FEW and min(ratios) > _CLEARLY_SLOWER:
            return ratio
