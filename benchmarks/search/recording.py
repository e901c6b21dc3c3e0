"""What was measured for a table so far: a file of JSON lines, so that a recording that is stopped goes on from there."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ansorlite.errors import AnsorliteError
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.search import Observation
from ansorlite.sketch.candidate import Candidate
from ansorlite.writing import replacing
from benchmarks.search.table import OUTCOMES, Table


@dataclass(frozen=True)
class Reading:
    """One program, measured once.

    Attributes:
        number: which pass it was, from 0.
        latency: seconds; a lower bound of what was stopped for being slow, ``None`` of a failure.
        build, run: seconds that went into it.
        load: of the machine meanwhile: processes that ran or waited for a core, the last minute's average.
    """

    trace: str
    number: int
    outcome: str
    latency: float | None
    build: float
    run: float
    load: float

    @property
    def observation(self) -> Observation:
        """As a strategy is told of it."""
        return Measurement(Candidate(self.trace), Outcome(self.outcome), latency=self.latency).observation


class Recording:
    """The readings in a file. The first line is the reference: every latency is in seconds of that one."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            AnsorliteError: the file is there, but holds something else.
        """
        self.path = path
        self.readings: list[Reading] = []
        if path.exists():
            try:
                self.readings = [Reading(**json.loads(line)) for line in path.read_text().splitlines()]
            except (TypeError, ValueError):
                raise AnsorliteError(f"{path} does not hold readings of this version; move it away") from None

    def add(self, reading: Reading) -> None:
        """Keep a reading; it is in the file when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(reading)) + "\n")
        self.readings.append(reading)

    def keep_reference(self) -> None:
        """Drop all readings but that of the reference, in the file as well: the table has the others."""
        self.readings = self.readings[:1]
        with replacing(self.path) as part:
            part.write_text("".join(json.dumps(asdict(reading)) + "\n" for reading in self.readings))

    @property
    def reference(self) -> Reading | None:
        """The first reading."""
        return self.readings[0] if self.readings else None

    def of_pass(self, number: int) -> dict[str, Reading]:
        """By trace, the readings of one pass; the reference's own is none."""
        return {reading.trace: reading for reading in self.readings[1:] if reading.number == number}

    @property
    def load(self) -> float:
        """The median load of the machine."""
        return statistics.median([reading.load for reading in self.readings if not math.isnan(reading.load)] or [math.nan])

    def restore(self, table: Table) -> None:
        """Take a table's first pass for readings, where the readings themselves are gone.

        The reference is what seconds are in. Where its reading is gone, too: of it a table has the trace alone, so its time is
        that of the row that it is.
        """
        place = table.places.get(table.meta.reference)
        if place is None and not self.readings:
            raise AnsorliteError("the table does not have its reference program; record it anew, into another folder")
        for at in [*([] if self.readings or place is None else [place]), *range(len(table))]:
            latency = float(table.seconds[at]) if np.isfinite(table.seconds[at]) else None
            outcome = OUTCOMES[table.outcome[at]].value
            self.add(Reading(table.names[at], 0, outcome, latency, float(table.build[at]), float(table.run[at]), math.nan))
