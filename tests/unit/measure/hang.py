"""A tuner whose candidate never ends: ``python -m tests.unit.measure.hang``."""

from __future__ import annotations

from ansorlite.measure import Measurer, MeasureSettings
from tests.unit.measure.fake_backend import faked
from tests.unit.measure.tasks import matmul


def main() -> None:
    settings = MeasureSettings(builders=1, run_seconds=1000.0, backend="tests.unit.measure.fake_backend")
    with Measurer(settings=settings) as measurer:
        list(measurer.measure(matmul(), [faked("waits")]))


if __name__ == "__main__":
    main()
