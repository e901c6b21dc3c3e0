"""The measurers by name and by address, and what holds one from outside to its contract. A new one is a line here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, TypeAlias

from ansorlite import lazy
from ansorlite.errors import ArgumentError
from ansorlite.measure.measurer import Measurer
from ansorlite.measure.roles import Workers
from ansorlite.measure.settings import MeasureSettings
from ansorlite.records.measurement import Measurement
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.tuner.loop import Measures

#: What makes a measurer of programs for a target: a context manager of what measures, entered when there is something to measure.
MeasurerMaker: TypeAlias = Callable[[Target, MeasureSettings], AbstractContextManager[Measures]]

#: Opens the workers of an address, for programs of a target.
_Open: TypeAlias = Callable[[str, Target, MeasureSettings], Workers]


@dataclass(frozen=True)
class Elsewhere:
    """A maker of measurers that time programs on other machines.

    Attributes:
        address: of the machines: ``ssh://pi@board``, ``ray://head:10001``; ``ray``.
    """

    address: str

    def __call__(self, target: Target, settings: MeasureSettings) -> AbstractContextManager[Measures]:
        """Reach the machines.

        Raises:
            ArgumentError: the package that reaches them is not installed.
        """
        module, extra, needed = _PLACES[self.address.partition("://")[0]]
        lazy.need(self.address, needed, extra)
        opening: _Open = lazy.module(module).open_workers
        return Measurer(target, settings, lambda target, settings: opening(self.address, target, settings))


#: What an address begins with → the module whose ``open_workers`` reaches the machines, the extra that brings the package that it
#: needs, and that package.
_PLACES: Final[Mapping[str, tuple[str, str, str]]] = {
    "ssh": ("ansorlite.measure.board.runner", "boards", "execnet"),
    "popen": ("ansorlite.measure.board.runner", "boards", "execnet"),
    "tracker": ("ansorlite.measure.board.leased", "boards", "execnet"),
    "ray": ("ansorlite.measure.cluster.workers", "ray", "ray"),
}

MEASURERS: Final[Mapping[str, MeasurerMaker]] = {"local": Measurer, "ray": Elsewhere("ray")}


def at_address(given: str) -> Elsewhere | None:
    """The maker of measurers at an address; ``None`` if the text is none."""
    scheme, colon, _ = given.partition("://")
    return Elsewhere(given) if colon and scheme in _PLACES else None


class Checked:
    """A measurer whose measurements are what they must be."""

    def __init__(self, measurer: Measures) -> None:
        self._measurer = measurer

    def measure(self, task: Task, candidates: Sequence[Candidate], best: Measurement | None) -> Iterator[Measurement]:
        """See :class:`Measures`.

        Raises:
            ArgumentError: the measurer does not give what it must.
        """
        count = 0
        for measurement in self._measurer.measure(task, candidates, best):
            if count == len(candidates):
                raise ArgumentError(f"the measurer gave more than {count} measurements for {count} candidates; give one for each")
            _check(measurement, candidates[count])
            count += 1
            yield measurement
        if count < len(candidates):
            raise ArgumentError(f"the measurer gave {count} measurements for {len(candidates)} candidates; give one for each")


def _check(measurement: object, candidate: Candidate) -> None:
    if not isinstance(measurement, Measurement):
        raise ArgumentError(f"the measurer gave {measurement!r}, which is no ansorlite.records.Measurement")
    if measurement.candidate != candidate:
        raise ArgumentError(f"the measurer gave {measurement.candidate} where {candidate} is due; give them in order")
    latency: object = measurement.latency
    found = f"the measurer gave outcome {measurement.outcome.value!r} and latency {latency!r}"
    if measurement.outcome.failed:
        if latency is not None:
            raise ArgumentError(f"{found}; a failure has none")
    elif not isinstance(latency, float) or not 0 < latency < math.inf:
        raise ArgumentError(f"{found}; a program that ran took some seconds, a float")
