"""How to measure: limits, repeats, and how many workers. Needs nothing but Python: it is read on boards, too."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

#: The backend that builds and loads programs; tests put one of their own in its place.
NATIVE: Final = "ansorlite.measure.native"

#: The runner's programs must meet the thread team that they will meet in use, so nothing of it is set here; the BLAS
#: behind the reference outputs must not leave threads of its own about.
WORKER_ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

#: The builders only compile: their libraries' thread pools would fight over the cores.
BUILDER_ENVIRONMENT: Final = {"OMP_NUM_THREADS": "1"}


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def cores() -> int:
    """How many of this machine's cores the process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class MeasureSettings:
    """How to measure. Times are in seconds.

    Attributes:
        build_seconds: limit on lowering and compiling one candidate.
        run_seconds: limit on one call of a candidate.
        naive_seconds: the same for the naive program, which is allowed to be slow.
        naive_patience: the same where another program of the task is known: the naive one is for comparison only, then.
        prepare_seconds: limit on making a task's inputs and reference outputs.
        check_seconds: limit on all that follows the first call: comparing the output, and the calls that are timed.
        memory_bytes: limit on the memory of one worker.
        slow_factor: a candidate whose first calls take so many times the best latency is not timed further, and a call that has
            taken as long (and :attr:`patience`) is not waited for.
        hopeless_factor: a candidate whose very first call took so many times the best latency is called no more.
        patience: no call is given up as slow before this time.
        repeats: how many times a candidate is timed, in turns with the best where it comes near it; the median counts.
        repeat_seconds: how long one repeat lasts at least, in as many calls as that takes.
        enough_seconds: a program that nothing is compared with is not repeated beyond this time.
        long_seconds: a program that takes longer than this is timed by one repeat of one call.
        builders: how many workers compile at once.
        recycle: a worker is replaced by a fresh one after so many candidates.
        identical_failures: so many equal failures in a row end the tuning. (Not of a program that is cut short for being
            slower than the best: one sketch may be slow, and others not. Nor of one whose machine was lost: that is no fault of
            the program's.)
        alike: machines share the candidates of a task if no peak of theirs is more than so many times the first one's, or less.
        wait_seconds: so long a lost machine is waited for where no other is left.
        timing: how long a program is timed: a name of ``ansorlite.measure.timing.TIMINGS``.
        seed: of the inputs.
        backend: the module that builds and loads programs.
    """

    build_seconds: float = 6.0
    run_seconds: float = 10.0
    naive_seconds: float = 120.0
    naive_patience: float = 3.0
    prepare_seconds: float = 300.0
    check_seconds: float = 60.0
    memory_bytes: int = field(default_factory=_half_of_memory)
    slow_factor: float = 3.0
    hopeless_factor: float = 10.0
    patience: float = 1.0
    repeats: int = 5
    repeat_seconds: float = 0.001
    enough_seconds: float = 0.1
    long_seconds: float = 0.5
    builders: int = field(default_factory=cores)
    recycle: int = 500
    identical_failures: int = 60
    alike: float = 1.15
    wait_seconds: float = 60.0
    timing: str = "pairs"
    seed: int = 0
    backend: str = NATIVE
