"""A tuner whose candidate never ends: ``python -m tests.unit.measure.hang``."""

from __future__ import annotations

from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.sketch.candidate import Candidate
from tests.unit.measure.tasks import matmul


def main() -> None:
    settings = MeasureSettings(builders=1, run_seconds=1000.0, backend="tests.unit.measure.fake_backend")
    with Measurer(settings=settings) as measurer:
        list(measurer.measure(matmul(), [Candidate("waits", (0,))]))


if __name__ == "__main__":
    main()
