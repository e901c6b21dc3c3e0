"""The wall clock, split; the clock is moved by hand."""

from __future__ import annotations

import time

import pytest

from ansorlite.tuner.clock import PHASES, PhaseClock


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: seconds[0])
    return seconds


@pytest.mark.parametrize(
    ("compile_seconds", "expected"),
    [
        (8.0, {"search": 2.0, "compile": 4.0, "measure": 5.0, "check": 1.0, "other": 3.0}),  # two compilers side by side
        (3.0, {"search": 2.0, "compile": 3.0, "measure": 5.0, "check": 1.0, "other": 4.0}),  # one second is nobody's
    ],
)
def test_what_workers_do_side_by_side_counts_once(now: list[float], compile_seconds: float, expected: dict[str, float]) -> None:
    clock = PhaseClock()
    with clock.search():
        now[0] += 2.0
    with clock.measuring():
        clock.busy(compile=compile_seconds, measure=5.0, check=1.0)
        now[0] += 10.0
    now[0] += 3.0
    phases = clock.phases(clock.elapsed)
    assert phases == pytest.approx(expected)
    assert tuple(phases) == PHASES
    assert sum(phases.values()) == pytest.approx(clock.elapsed)
