"""The measurers by name, and what holds one from outside to its contract. A new one is a line here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from ansorlite.errors import ArgumentError
from ansorlite.measure.measurer import Measurer
from ansorlite.measure.settings import MeasureSettings
from ansorlite.records.measurement import Measurement
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.tuner.loop import Measures

#: What makes a measurer of programs for a target: a context manager of what measures, entered when there is something to measure.
MeasurerMaker: TypeAlias = Callable[[Target, MeasureSettings], AbstractContextManager[Measures]]

MEASURERS: Final[Mapping[str, MeasurerMaker]] = {"local": Measurer}


class Checked:
    """A measurer whose measurements are what they must be."""

    def __init__(self, measurer: Measures) -> None:
        self._measurer = measurer

    def measure(
        self, task: Task, candidates: Sequence[Candidate], keys: Sequence[str], best: Measurement | None
    ) -> Iterator[Measurement]:
        """See :class:`Measures`.

        Raises:
            ArgumentError: the measurer does not give what it must.
        """
        count = 0
        for measurement in self._measurer.measure(task, candidates, keys, best):
            if count == len(candidates):
                raise ArgumentError(f"the measurer gave more than {count} measurements for {count} candidates; give one for each")
            _check(measurement, candidates[count], keys[count])
            count += 1
            yield measurement
        if count < len(candidates):
            raise ArgumentError(f"the measurer gave {count} measurements for {len(candidates)} candidates; give one for each")


def _check(measurement: object, candidate: Candidate, key: str) -> None:
    if not isinstance(measurement, Measurement):
        raise ArgumentError(f"the measurer gave {measurement!r}, which is no ansorlite.records.Measurement")
    if (measurement.candidate, measurement.key) != (candidate, key):
        found = f"{measurement.candidate} (key {measurement.key!r})"
        raise ArgumentError(
            f"the measurer gave {found} where {candidate} (key {key!r}) is due; give them in order, with their keys"
        )
    latency: object = measurement.latency
    found = f"the measurer gave outcome {measurement.outcome.value!r} and latency {latency!r}"
    if measurement.outcome.failed:
        if latency is not None:
            raise ArgumentError(f"{found}; a failure has none")
    elif not isinstance(latency, float) or not 0 < latency < math.inf:
        raise ArgumentError(f"{found}; a program that ran took some seconds, a float")
