"""What the runner's side of a run makes of an order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ansorlite.measure import MeasureSettings
from ansorlite.measure.bench import Bench
from ansorlite.measure.protocol import Prepare, Run, Status
from tests.unit.measure import fake_backend
from tests.unit.measure.tasks import matmul


@pytest.mark.parametrize(("shortest", "once", "calls"), [(0.0, True, 1), (0.0, False, 2), (60.0, True, 2)])
def test_of_a_program_for_comparison_one_call_is_enough_unless_it_is_short(
    shortest: float, once: bool, calls: int, tmp_path: Path
) -> None:
    task, called = matmul(9), 0

    def load(*given: object) -> object:
        program = fake_backend.load(*given)  # type: ignore[arg-type]

        def call(count: int) -> None:
            nonlocal called
            called += count
            program(1)

        return call

    settings = MeasureSettings(repeats=1, repeat_seconds=shortest)
    bench = Bench(SimpleNamespace(load=load), settings, lambda _: None)  # type: ignore[arg-type]
    reference, program = str(tmp_path / "reference"), tmp_path / "program"
    program.write_bytes(b"good: 0")
    assert bench.prepare(task, Prepare(task.key, reference)).status is Status.OK
    answer = bench.run(task, Run(task.key, str(program), reference, best=None, rival=None, once=once))
    assert (answer.status, answer.error) == (Status.OK, "")
    assert answer.latency is not None
    assert min(called, 2) == calls
