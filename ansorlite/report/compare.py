"""Timing two things side by side, so that whatever else the machine does slows both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ansorlite.report.cores import apart
from ansorlite.runtime.timing import preemptions

#: Seconds since some moment.
Clock: TypeAlias = Callable[[], float]

#: Seconds of one turn.
_TURN: Final = 0.05
#: Seconds between turns, at least: the other's threads go on looking for work for a while, on our cores.
_REST: Final = 0.05
#: The rest goes on until this process has used less of one core than this share,
_IDLE: Final = 0.1
#: but not for more than so many times the rest: some pools of threads never sleep.
_PATIENCE: Final = 20
#: Counted calls in one turn, at most.
_MOST: Final = 100
#: A call that takes longer is a turn by itself.
_LONG: Final = 1.0
#: Turns for each side, however long they take.
_LEAST: Final = 5


@dataclass(frozen=True)
class Comparison:
    """Median seconds of one call of ours and of the other, over turns."""

    ours: float
    against: float | None

    @property
    def ratio(self) -> float | None:
        """How many times faster ours is; below 1 where it is slower."""
        return None if self.against is None else self.against / self.ours


def time_alone(call: Callable[[], object], seconds: float) -> float:
    """Median seconds of one call, from as many turns as fit into ``seconds`` (five at least)."""
    return statistics.median(take_turns((call,), seconds)[0])


def compare(ours: Callable[[], object], other: Callable[[], object], seconds: float) -> Comparison:
    """Let both have turns for ``seconds`` (five each at least)."""
    first, second = take_turns((ours, other), seconds)
    return Comparison(statistics.median(first), statistics.median(second))


def take_turns(
    calls: Sequence[Callable[[], object]], seconds: float, *, turn: float = _TURN, rest: float = _REST
) -> list[list[float]]:
    """Let each call have a turn, then each again, for ``seconds`` (five each at least).

    Args:
        turn: seconds of one turn, in as many calls as fit (one at least).
        rest: seconds of sleep before each, again and again until the threads of the one before sleep too.

    Returns:
        For each call, one number a turn: the median seconds of a call. Equal positions are of one round, so that what slows
        the machine for longer than a round cancels in their ratios.
    """
    begin = time.perf_counter()
    taken = []
    for times in rounds(calls, turn=turn, rest=rest):
        taken.append(times)
        if len(taken) >= _LEAST and time.perf_counter() - begin >= seconds:
            break
    return [list(medians) for medians in zip(*taken, strict=True)]


def rounds(
    calls: Sequence[Callable[[], object]], *, turn: float = _TURN, rest: float = _REST, clock: Clock = time.perf_counter
) -> Iterator[list[float]]:
    """One round after another, without end: the median seconds of each call in its turn; see :func:`take_turns`.

    Args:
        clock: what the seconds of a call are taken from. Where all work is the calling thread's, ``time.thread_time`` leaves
            out what other processes do on its core.
    """
    while True:
        times = []
        for call in calls:
            _settle(rest)
            times.append(statistics.median(_turn(call, turn, clock)))
        yield times


def _settle(rest: float) -> None:
    """Sleep until no thread of this process looks for work any more: OpenBLAS's do for about a tenth of a second."""
    if not rest:
        return
    for _ in range(_PATIENCE):
        used = time.process_time()
        time.sleep(rest)
        if time.process_time() - used < _IDLE * rest:
            return


def _turn(call: Callable[[], object], seconds: float, clock: Clock) -> list[float]:
    """Seconds of some calls in a row: of those that kept their cores, if any did, else of all.

    The first is not counted: after the other's turn caches are cold and threads asleep.
    """
    first, _ = _seconds(call, clock)
    if first >= _LONG:
        return [first]
    undisturbed: list[float] = []
    disturbed: list[float] = []
    with apart():
        end = time.perf_counter() + seconds
        while not (undisturbed or disturbed) or (len(undisturbed) < _MOST and time.perf_counter() < end):
            taken, kept = _seconds(call, clock)
            (undisturbed if kept else disturbed).append(taken)
    return undisturbed or disturbed


def _seconds(call: Callable[[], object], clock: Clock) -> tuple[float, bool]:
    """(seconds of one call, whether no thread of this process had to give up its core to another process meanwhile)"""
    before = preemptions()
    start = clock()
    call()
    seconds = clock() - start
    return seconds, preemptions() == before
