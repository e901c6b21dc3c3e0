"""Runs that other code made: whether today's comes to the same, so that they count, and those that do not made anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.search.results import Judged, Results


@dataclass(frozen=True)
class Confirmed:
    """What became of one preset's runs.

    Attributes:
        compared: runs made again, each beside what it was.
        renewed: runs of other code that count as today's from now on.
        anew: runs of other code that were made anew beside those that were compared.
        left: whether the time was up before all of them were.
    """

    preset: str
    compared: int
    renewed: int
    anew: int = 0
    left: bool = False


@dataclass
class Confirmation:
    """Goes through all runs of so many trials.

    Attributes:
        digests: of today's code, by preset and table.
        make: the run of today's code with a run's preset, table, seed and trials.
        until: the time, as ``time.monotonic`` tells it, after which no run is begun.
    """

    runs: Results
    digests: Mapping[tuple[str, str], str]
    trials: int
    make: Callable[[Judged], Judged]
    until: float

    def __post_init__(self) -> None:
        current = self.runs.current(self.digests, self.trials)
        self._known = {(self.digests[key], run.seed): run for key, made in current.items() for run in made}

    def each(self, presets: Sequence[str], tables: Sequence[str], sample: int, anew: bool) -> Iterator[Confirmed | None]:
        """What became of each preset with runs of other code; ``None`` at last, where the time is up before its turn.

        Args:
            sample: runs that are compared, of each table.
            anew: whether all runs of a preset are made again once one is not as it was.
        """
        for preset in presets:
            old = [self.runs.before(preset, table, self.trials, self.digests[preset, table]) for table in tables]
            drawn = [row for rows in old for row in rows[:sample]]
            if not drawn:
                continue
            if time.monotonic() >= self.until:
                yield None
                return
            changed = next((number for number, row in enumerate(drawn, 1) if self._today(row).bests != row.bests), None)
            if changed is None:
                self.runs.renew([row for rows in old for row in rows if not self._is_known(row)], self.digests)
                yield Confirmed(preset, len(drawn), sum(map(len, old)))
            else:
                yield self._changed(preset, changed, old, anew)

    def _changed(self, preset: str, compared: int, old: Sequence[Sequence[Judged]], anew: bool) -> Confirmed:
        others = [row for rows in old for row in rows if not self._is_known(row)] if anew else []
        for count, row in enumerate(others):
            if time.monotonic() >= self.until:
                return Confirmed(preset, compared, 0, count, left=True)
            self._today(row)
        return Confirmed(preset, compared, 0, len(others))

    def _is_known(self, row: Judged) -> bool:
        return (self.digests[row.preset, row.table], row.seed) in self._known

    def _today(self, row: Judged) -> Judged:
        """The run of today's code: the one that is known, or a new one, which is kept."""
        if not self._is_known(row):
            made = self.make(row)
            self.runs.add(made)
            self._known[made.digest, made.seed] = made
        return self._known[self.digests[row.preset, row.table], row.seed]
