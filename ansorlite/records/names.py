"""Records of equal computations with other names: their traces are kept in the names of the one that was seen first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ansorlite import lazy
from ansorlite.errors import RecordsError, ScheduleError
from ansorlite.records.measurement import Measurement
from ansorlite.sketch.candidate import Candidate
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.serialize import load

if TYPE_CHECKING:
    from ansorlite.schedule import trace_names
else:  # whoever has no records of other names does without schedules
    trace_names = lazy.module("ansorlite.schedule.trace_names")


@dataclass(frozen=True)
class Naming:
    """Two equal computations, by the names of one of which a database knows both.

    A trace that is none of the computation stays as it is: whoever wants its program learns that there is none.
    """

    kept: ComputeDAG
    own: ComputeDAG

    def to_keep(self, measurement: Measurement) -> Measurement:
        """In the names by which the database knows the computation."""
        return _in_names(measurement, self.own, self.kept)

    def to_use(self, measurement: Measurement) -> Measurement:
        """In the names of one's own computation."""
        return _in_names(measurement, self.kept, self.own)


def naming(kept: Mapping[str, Any], own: ComputeDAG) -> Naming:
    """What turns names into names; of a stored computation that cannot be read, or is another one, nothing is known."""
    try:
        stored = load(dict(kept))
    except RecordsError:
        return Naming(own, own)
    return Naming(stored if stored.key == own.key else own, own)


def _in_names(measurement: Measurement, source: ComputeDAG, target: ComputeDAG) -> Measurement:
    if source.names == target.names:
        return measurement
    try:
        trace = trace_names.renamed(measurement.candidate.trace, source, target)
    except ScheduleError:
        return measurement
    return replace(measurement, candidate=Candidate(trace))
