"""What a measurement says to a strategy."""

from __future__ import annotations

import pytest

from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.search import Observation
from ansorlite.sketch.candidate import NAIVE


@pytest.mark.parametrize(
    ("measurement", "expected"),
    [
        (Measurement(NAIVE, Outcome.OK, latency=2e-3), Observation(NAIVE, 2e-3)),
        (Measurement(NAIVE, Outcome.EARLY_STOPPED, latency=9e-3), Observation(NAIVE, 9e-3, censored=True)),
        (Measurement(NAIVE, Outcome.CRASH, error="it crashed"), Observation(NAIVE)),
    ],
)
def test_a_strategy_is_told_of_latencies_bounds_and_failures(measurement: Measurement, expected: Observation) -> None:
    assert measurement.observation == expected
