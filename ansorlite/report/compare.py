"""Timing two things side by side, so that whatever else the machine does slows both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: Seconds of one turn.
_TURN: Final = 0.05
#: Seconds between turns: the other's threads go on looking for work for a while (OpenBLAS's for 2^26 cycles), on our cores.
_REST: Final = 0.05
#: Counted calls in one turn, at most.
_MOST: Final = 100
#: A call that takes longer is a turn by itself.
_LONG: Final = 1.0
#: Turns for each side, however long they take.
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
    """Median seconds of one call, from as many turns as fit into ``seconds`` (five at least)."""
    return statistics.median(_turns((call,), seconds)[0])


def compare(ours: Callable[[], object], other: Callable[[], object], seconds: float) -> Comparison:
    """Let both have turns for ``seconds`` (five each at least)."""
    first, second = _turns((ours, other), seconds)
    return Comparison(statistics.median(first), statistics.median(second))


def _turns(calls: tuple[Callable[[], object], ...], seconds: float) -> list[list[float]]:
    taken: list[list[float]] = [[] for _ in calls]
    begin = time.perf_counter()
    turn = 0
    while turn < _LEAST or time.perf_counter() - begin < seconds:
        for call, counted in zip(calls, taken, strict=True):
            time.sleep(_REST)
            counted += _turn(call)
        turn += 1
    return taken


def _turn(call: Callable[[], object]) -> list[float]:
    """Seconds of some calls in a row. The first is not counted: after the other's turn caches are cold and threads asleep."""
    first = _seconds(call)
    if first >= _LONG:
        return [first]
    counted: list[float] = []
    end = time.perf_counter() + _TURN
    while not counted or (len(counted) < _MOST and time.perf_counter() < end):
        counted.append(_seconds(call))
    return counted


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
