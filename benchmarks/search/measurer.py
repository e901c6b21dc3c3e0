"""A measurer that looks every program up in a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from types import TracebackType
from typing import Self

import numpy as np

from ansorlite.measure.settings import MeasureSettings
from ansorlite.records.measurement import Measurement, Outcome, Seconds
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.tuner.measurers import MeasurerMaker
from benchmarks.search.table import OUTCOMES, Table


class Noise(Enum):
    """What a program's second measurement says: the same again, or any of its passes at random."""

    NONE = "none"
    PASSES = "passes"


class TableMeasurer:
    """Measures programs by looking them up: what the tuner needs of a measurer, and a context manager.

    A program that the table does not have fails to compile.
    """

    def __init__(self, table: Table, noise: Noise = Noise.NONE, seed: int = 0) -> None:
        self._table = table
        self._noise = noise
        self._rng = np.random.default_rng(seed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def measure(self, _: Task | None, candidates: Sequence[Candidate], __: Measurement | None = None) -> Iterator[Measurement]:
        """One measurement for each candidate, in order. Neither task nor best matter: a table is of one task."""
        for candidate in candidates:
            yield self._measured(candidate)

    def _measured(self, candidate: Candidate) -> Measurement:
        table = self._table
        place = table.places.get(candidate.trace)
        if place is None:
            return Measurement(candidate, Outcome.COMPILE_ERROR, error="the table does not have this program")
        outcome = OUTCOMES[table.outcome[place]]
        seconds = Seconds(float(table.build[place]), float(table.run[place]))
        if outcome.failed:
            return Measurement(candidate, outcome, error="it failed when the table was recorded", seconds=seconds)
        latency = self._latency(place)
        return Measurement(candidate, outcome, latency=latency, checked=outcome is Outcome.OK, seconds=seconds)

    def _latency(self, place: int) -> float:
        passes = self._table.passes[place]
        passes = passes[np.isfinite(passes)]
        if self._noise is Noise.NONE or not len(passes):
            return float(self._table.seconds[place])
        return float(self._rng.choice(passes))


def table_measurer(table: Table, noise: Noise = Noise.NONE) -> MeasurerMaker:
    """What ``al.tune(measurer=)`` takes: every program looked up in ``table``."""

    def made(_: Target, settings: MeasureSettings) -> TableMeasurer:
        return TableMeasurer(table, noise, settings.seed)

    return made
