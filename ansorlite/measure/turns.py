"""Candidates timed: one alone, or two in turns. Needs nothing but Python and numpy: it runs on boards, too."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from ansorlite.measure.settings import MeasureSettings
from ansorlite.runtime.timing import Call, calls_for

if TYPE_CHECKING:
    from ansorlite.runtime.device import Device

#: A program that seems to be the best gets so many times the pairs of turns of another.
_CONFIRMED: Final = 3
#: It is believed to be as much faster as it was in this share of them.
_SURE: Final = 0.75
#: Of long turns, each a mean by itself, fewer pairs do, but no fewer than this.
_FEWEST: Final = 3
#: After so many pairs, a program that was so many times slower in each of them is timed no more.
_CLEARLY_SLOWER: Final = ((2, 1.5), (3, 1.2))

#: A turn in which something else took the machine is taken again, so many times in all,
_ATTEMPTS: Final = 3
#: but not one of so many seconds: on a busy machine it would always be disturbed, and it is long enough for a mean.
_LONG_TURN: Final = 0.03


class Timed(Protocol):
    """A program that is bound to its arrays, and the clock of what it runs on."""

    def seconds(self, calls: int) -> float:
        """Of so many calls in a row, all together."""

    def disturbances(self) -> int:
        """How often something else took what it runs on from this process, so far."""


@dataclass(frozen=True)
class OnDevice:
    """A program on a device."""

    call: Call
    device: Device

    def seconds(self, calls: int) -> float:
        return self.device.time(self.call, calls)

    def disturbances(self) -> int:
        return self.device.disturbances()


def undisturbed(program: Timed, calls: int) -> float:
    """Seconds of one call, as the mean of ``calls`` of them: of a turn that nothing disturbed, if there is one among a few."""
    shortest = math.inf
    for _ in range(_ATTEMPTS):
        before = program.disturbances()
        seconds = program.seconds(calls)
        shortest = min(shortest, seconds / calls)
        if program.disturbances() == before or seconds >= _LONG_TURN:
            break
    return shortest


def latency(program: Timed, first: float, settings: MeasureSettings) -> float:
    """Seconds of one call: the median of the repeats, fewer of them where they take long.

    Args:
        first: what the first call took. A first call has cold caches and fresh pages, so it only counts when the
            program is so slow that another call would cost more than it tells.
    """
    if first >= settings.long_seconds:
        return first
    spent = again = undisturbed(program, 1)
    calls = calls_for(min(first, again), settings.repeat_seconds)
    repeats = [again] if calls == 1 else []
    while len(repeats) < settings.repeats and not (repeats and spent >= settings.enough_seconds):
        repeats.append(undisturbed(program, calls))
        spent += calls * repeats[-1]
    return statistics.median(repeats)


def beside(
    program: Timed, first: float, rival: Callable[[], Timed] | None, best: float | None, settings: MeasureSettings
) -> float:
    """Seconds of one call: in units of the best program's, wherever the two are close enough to be compared.

    Args:
        first: what the first call took.
        rival: gives the best program; ``None`` where it is ``program``, or there is none.
        best: seconds of a call of the best program.
    """
    if rival is None or best is None:
        return latency(program, first, settings)
    estimate = min(first, undisturbed(program, max(1, calls_for(best, settings.repeat_seconds) // 4)))
    if estimate >= settings.long_seconds or best > settings.slow_factor * estimate:
        return latency(program, first, settings)
    other = rival()
    other.seconds(1)
    return best * relative(program, other, (estimate, best), settings)


def slower(program: Timed, first: float, best: float | None, settings: MeasureSettings) -> float | None:
    """The latency of a program that is far slower than ``best``, without more calls than that needs; ``None`` if it is not."""
    if best is None or first <= settings.slow_factor * best:
        return None
    if first > settings.hopeless_factor * best and first > settings.repeat_seconds:
        return first
    again = min(first, undisturbed(program, 1))
    return again if again > settings.slow_factor * best else None


def relative(
    ours: Timed, theirs: Timed, latencies: tuple[float, float], settings: MeasureSettings, until: float = math.inf
) -> float:
    """How many times the latency of ``theirs`` that of ``ours`` is: the median over pairs of turns, one for each.

    Neighbours on the same machine slow it for tenths of a second at a time: what lies within one pair suffers alike.
    A program that is clearly slower gets few pairs; one that seems to be faster has to stay so for three
    times as many, and counts as being as much faster as it was in three quarters of them.

    Args:
        latencies: of ours and theirs, roughly.
        until: the time, as ``time.perf_counter`` tells it, after which no further pair begins.
    """
    our_calls, their_calls = (calls_for(latency, settings.repeat_seconds) for latency in latencies)
    enough = min(settings.repeats, max(_FEWEST, int(settings.enough_seconds / sum(latencies))))
    wanted = enough * _CONFIRMED
    ratios: list[float] = []
    while True:
        if len(ratios) % 2:
            b = undisturbed(theirs, their_calls)
            a = undisturbed(ours, our_calls)
        else:
            a = undisturbed(ours, our_calls)
            b = undisturbed(theirs, their_calls)
        ratios.append(a / b)
        pairs, ratio = len(ratios), statistics.median(ratios)
        late = time.perf_counter() >= until
        if any(pairs >= few and min(ratios) > slower for few, slower in _CLEARLY_SLOWER):
            return ratio
        if ratio >= 1.0:
            if pairs >= enough or late:
                return ratio
        elif pairs >= wanted or late:
            # Luck is taken out of victories, or a row of lucky ones would make records faster than any program.
            return min(1.0, float(np.quantile(ratios, _SURE)))
        elif sum(each >= 1.0 for each in ratios) > (1.0 - _SURE) * wanted:
            return 1.0  # three quarters of the pairs cannot be won any more
