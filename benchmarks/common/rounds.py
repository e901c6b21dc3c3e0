"""Everybody has a short turn, many times over; the rounds beside which other work took least of the machine count."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import psutil

from ansorlite.report.compare import Clock, rounds

#: Seconds of one turn: a round of all contenders is to be shorter than a neighbour's burst of work.
_TURN: Final = 0.015
#: Seconds between turns, at least: a peer's threads look for work for a while after a call.
_REST: Final = 0.03
#: Rounds that count, at least.
_LEAST: Final = 7


@dataclass(frozen=True)
class Rounds:
    """
    Attributes:
        times: for each contender, the median seconds of a call in each round that counts.
        busy: the share of the machine that other processes took beside those rounds, median.
    """

    times: list[list[float]]
    busy: float


def quietest_rounds(
    calls: Sequence[Callable[[], Any]], seconds: float, threads: int, *, processor: Clock = time.thread_time
) -> Rounds:
    """Rounds for ``seconds`` (seven at least); the quieter half of them, but no fewer than seven.

    Which rounds count is decided by the load of other processes alone, not by the times. On one thread, processor time is what is
    taken, without what other processes do on its core.

    Args:
        processor: a clock of processor time: the calling thread's, or the process's where a contender has threads of its own.
    """
    taken: list[tuple[float, list[float]]] = []
    end = time.perf_counter() + seconds
    load = _Load()
    clock = processor if threads == 1 else time.perf_counter
    for times in rounds(calls, turn=_TURN, rest=_REST, clock=clock):
        taken.append((load.since_last(), times))
        if len(taken) >= _LEAST and time.perf_counter() >= end:
            break
    quiet = sorted(taken, key=lambda round_: round_[0])[: max(_LEAST, len(taken) // 2)]
    return Rounds(np.transpose([times for _, times in quiet]).tolist(), statistics.median(share for share, _ in quiet))


class _Load:
    """What other processes take of the machine, the hypervisor's other guests included as far as it tells."""

    def __init__(self) -> None:
        self._last = self._now()

    def since_last(self) -> float:
        """Their share since the last call (or the making), from 0 to 1."""
        before, self._last = self._last, self._now()
        wall, others = (after - start for after, start in zip(self._last, before, strict=True))
        return min(1.0, max(0.0, others / wall))

    def _now(self) -> tuple[float, float]:
        """(core-seconds there were, core-seconds others used)"""
        times = psutil.cpu_times()
        idle = times.idle + times.iowait
        return sum(times[:8]), sum(times[:8]) - idle - time.process_time()
