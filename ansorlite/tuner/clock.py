"""Where the seconds of a tuning run go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: The phases of tuning; ``other`` is what is left of the wall clock: starting workers, the database, drawing.
PHASES: Final = ("search", "compile", "measure", "check", "other")


class PhaseClock:
    """Splits the wall clock, from its making on, among :data:`PHASES`."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._search = 0.0
        self._measuring = 0.0
        self._busy = {"compile": 0.0, "measure": 0.0, "check": 0.0}

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was made."""
        return time.perf_counter() - self._begin

    def over(self, limit: float | None) -> bool:
        """Whether so many seconds are over, if they are limited."""
        return limit is not None and self.elapsed >= limit

    @property
    def alone(self) -> float:
        """Seconds in which programs ran and were checked, one by one."""
        return self._busy["measure"] + self._busy["check"]

    @contextmanager
    def search(self) -> Iterator[None]:
        """The seconds inside are search."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._search += time.perf_counter() - begin

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """The seconds inside belong to the measurer: they are split by what :meth:`busy` is told."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._measuring += time.perf_counter() - begin

    def busy(self, *, compile: float, measure: float, check: float) -> None:
        """Seconds that workers spent on one candidate. They compile side by side; a program runs and is checked alone."""
        self._busy["compile"] += compile
        self._busy["measure"] += measure
        self._busy["check"] += check

    def phases(self, total: float) -> dict[str, float]:
        """Seconds by phase; they add up to ``total``."""
        # While no program runs the measurer waits for compilers, as long as there are any at work.
        waited = min(self._busy["compile"], max(0.0, self._measuring - self.alone))
        spent = {**self._busy, "search": self._search, "compile": waited}
        return {phase: spent.get(phase, max(0.0, total - sum(spent.values()))) for phase in PHASES}
