"""Candidates timed: one alone, or two in turns. Needs nothing but Python and numpy: it runs on boards, too."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
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
#: After so many pairs, a program that was so many times slower in each of them is timed no more; one pair less of long turns.
_CLEARLY_SLOWER: Final = ((2, 1.3), (3, 1.05))

#: So many repeats may pass, by its first call, until a program is known to be far slower than the best.
_FEW_REPEATS: Final = 4

#: A turn in which something else took the machine is taken again, so many times in all,
_ATTEMPTS: Final = 3
#: but not beyond so many seconds: on a busy machine such a turn would always be disturbed, and it is long enough for a mean.
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
    shortest, spent = math.inf, 0.0
    for _ in range(_ATTEMPTS):
        before = program.disturbances()
        seconds = program.seconds(calls)
        shortest, spent = min(shortest, seconds / calls), spent + seconds
        if program.disturbances() == before or spent + seconds > _LONG_TURN:
            break
    return shortest


def is_long(first: float, settings: MeasureSettings) -> bool:
    """Whether a first call took longer than all repeats of a short program do: cold caches are little of it."""
    return first >= settings.repeats * settings.repeat_seconds


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
    again = undisturbed(program, _for_estimate(best, settings))
    estimate = min(first, again)
    if estimate >= settings.long_seconds or best > settings.slow_factor * estimate:
        return latency(program, first, settings)
    other = rival()
    if best < settings.repeat_seconds:
        other.seconds(1)
        return best * relative(program, other, (estimate, best), settings)
    # What was called for an estimate was a whole turn.
    return best * relative(program, other, (estimate, best), settings, pairs=[again / undisturbed(other, 1)])


def slower(program: Timed, first: float, best: float | None, settings: MeasureSettings) -> float | None:
    """The latency of a program that is far slower than ``best``, by no more calls than that needs; ``None`` if it is not."""
    if best is None or first <= settings.slow_factor * best:
        return None
    if first > settings.hopeless_factor * best and first > settings.repeat_seconds:
        return first
    # A single call of a short program may wait for threads that sleep, which takes longer than the program.
    calls = min(_for_estimate(best, settings), calls_for(first, _FEW_REPEATS * settings.repeat_seconds))
    again = min(first, undisturbed(program, calls))
    return again if again > settings.slow_factor * best else None


def _for_estimate(best: float, settings: MeasureSettings) -> int:
    """Calls of a quarter of a repeat, of a program that is as fast as the best."""
    return max(1, calls_for(best, settings.repeat_seconds) // 4)


def relative(
    ours: Timed,
    theirs: Timed,
    latencies: tuple[float, float],
    settings: MeasureSettings,
    until: float = math.inf,
    pairs: Sequence[float] = (),
) -> float:
    """How many times the latency of ``theirs`` that of ``ours`` is: the median over pairs of turns, one for each.

    Neighbours on the same machine slow it for tenths of a second at a time: what lies within one pair suffers alike.
    A program that is clearly slower gets few pairs; one that seems to be faster has to stay so for three
    times as many, and counts as being as much faster as it was in three quarters of them.

    Args:
        latencies: of ours and theirs, roughly.
        until: the time, as ``time.perf_counter`` tells it, after which no further pair begins.
        pairs: the ratios of pairs that were taken before.
    """
    our_calls, their_calls = (calls_for(latency, settings.repeat_seconds) for latency in latencies)
    enough = min(settings.repeats, max(_FEWEST, int(settings.enough_seconds / sum(latencies))))
    fewer = min(latencies) >= _LONG_TURN
    ratios = list(pairs)
    while (found := _decided(ratios, enough, fewer, ratios != [] and time.perf_counter() >= until)) is None:
        if len(ratios) % 2:
            b = undisturbed(theirs, their_calls)
            a = undisturbed(ours, our_calls)
        else:
            a = undisturbed(ours, our_calls)
            b = undisturbed(theirs, their_calls)
        ratios.append(a / b)
    return found


def _decided(ratios: Sequence[float], enough: int, fewer: bool, late: bool) -> float | None:
    """What the ratios of pairs say; ``None`` where more pairs are to be taken.

    Args:
        enough: pairs, for a program that is not the best.
        fewer: whether turns are long, so that one pair less tells that a program is clearly slower.
        late: whether no other pair is to be taken.
    """
    if not ratios:
        return None
    pairs, ratio, wanted = len(ratios), statistics.median(ratios), enough * _CONFIRMED
    if any(pairs >= few - fewer and min(ratios) > slower for few, slower in _CLEARLY_SLOWER):
        return ratio
    if ratio >= 1.0:
        return ratio if pairs >= enough or late else None
    if pairs >= wanted or late:
        # Luck is taken out of victories, or a row of lucky ones would make records faster than any program.
        return min(1.0, float(np.quantile(ratios, _SURE)))
    # Three quarters of the pairs cannot be won any more?
    return 1.0 if sum(each >= 1.0 for each in ratios) > (1.0 - _SURE) * wanted else None
