"""The clock: what everything that is timed shares, and how thoroughly a kernel is timed."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

#: What is bound to its arrays: runs so many times in a row.
Call: TypeAlias = Callable[[int], None]


def wall_clock(call: Call, calls: int) -> float:
    """Seconds that so many calls in a row take, all together."""
    start = time.perf_counter()
    call(calls)
    return time.perf_counter() - start


def calls_for(latency: float, seconds: float) -> int:
    """How many calls of ``latency`` fill ``seconds``; at least one."""
    return max(1, round(seconds / max(latency, 1e-8)))


def turns_for(taken: Callable[[int], float], seconds: float) -> int:
    """How many turns fill half of ``seconds`` or more; ``taken`` are the seconds of so many, in all.

    What only the first turn does, such as starting threads, is not counted.
    """
    taken(1)
    turns = 1
    while (spent := taken(turns)) < seconds / 2:
        turns = max(2 * turns, int(0.9 * turns * seconds / max(spent, 1e-7)))
    return turns


def preemptions() -> int:
    """How often threads of this process have lost their core to another process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


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
        flush_bytes: memory to overwrite before each repeat, which is then one call: times with cold caches. 0: none.
    """

    min_seconds: float = 0.1
    min_repeats: int = 5
    max_repeats: int = 1000
    repeat_seconds: float = 0.002
    flush_bytes: int = 0


def sweeper(nbytes: int) -> Callable[[], None]:
    """What overwrites so many bytes of the host's memory, so that its caches hold nothing else."""
    swept = np.zeros(nbytes, np.uint8)

    def sweep() -> None:
        np.add(swept, 1, out=swept)

    return sweep


def measure(
    seconds: Callable[[int], float],
    settings: TimingSettings | None = None,
    sweeps: Callable[[int], Callable[[], None]] = sweeper,
) -> Timing:
    """The time of one call of a program. The first call warms up, and is not counted.

    Args:
        seconds: makes so many calls in a row, and says how long they took.
        sweeps: makes what overwrites so many bytes of the memory that the program is in.
    """
    settings = settings or TimingSettings()
    start = time.perf_counter()
    first = seconds(1)
    flush = sweeps(settings.flush_bytes) if settings.flush_bytes else None
    calls = 1 if flush is not None else _calls(seconds, min(first, seconds(1)), settings)
    repeats: list[float] = []
    while len(repeats) < settings.max_repeats:
        if flush is not None:
            flush()
        repeats.append(seconds(calls) / calls)
        if len(repeats) >= settings.min_repeats and time.perf_counter() - start >= settings.min_seconds:
            break
    return Timing.of(repeats)


def _calls(seconds: Callable[[int], float], estimate: float, settings: TimingSettings) -> int:
    """How many calls fill a repeat; a short program is estimated again over many calls."""
    calls = calls_for(estimate, settings.repeat_seconds)
    return calls if calls <= 10 else calls_for(seconds(calls) / calls, settings.repeat_seconds)
