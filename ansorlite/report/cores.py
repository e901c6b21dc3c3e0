"""Keeping the threads of a process off the core of the thread that calls them, while something is timed.

Linux may wake a helper of a thread pool on its caller's core and leave both there for tens of milliseconds, beside a core that
idles: whatever runs then takes twice as long, whosever pool it is. Our own team keeps off by itself
(:mod:`ansorlite.codegen.team`); for a comparison, all others are given the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_THREADS: Final = Path("/proc/self/task")


@contextmanager
def apart() -> Iterator[None]:
    """Keep the calling thread on one core and every other thread that the process has now on the rest; afterwards as before."""
    allowed = os.sched_getaffinity(0)
    core = min(allowed)
    others = allowed - {core}
    if not others or not _THREADS.exists():
        yield
        return
    before: dict[int, set[int]] = {}
    for task in _THREADS.iterdir():
        thread = int(task.name)
        with suppress(ProcessLookupError):  # it has ended meanwhile
            before[thread] = os.sched_getaffinity(thread)
    del before[threading.get_native_id()]
    try:
        os.sched_setaffinity(0, {core})
        for thread in before:
            _let_use(thread, others)
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        for thread, cores in before.items():
            _let_use(thread, cores)


def _let_use(thread: int, cores: set[int]) -> None:
    with suppress(ProcessLookupError):
        os.sched_setaffinity(thread, cores)
