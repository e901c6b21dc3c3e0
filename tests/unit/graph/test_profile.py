"""Profiles: the steps are those of the model, and the figures follow from the times."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from ansorlite.errors import ArgumentError
from ansorlite.export.description import StepFacts
from ansorlite.graph.executable import compile_model
from ansorlite.graph.graph import Graph
from ansorlite.graph.model import Model
from ansorlite.graph.profile import measure_profile
from ansorlite.report.profile import as_json, table
from ansorlite.runtime.peaks import MemoryLevel, Peaks
from tests.unit.graph.test_native_calls import graph, inputs, mixed, native

__all__ = ["graph"]

PEAKS = Peaks(2, 100e9, (MemoryLevel("L1", 1 << 10, 80e9, 40e9), MemoryLevel("memory", 1 << 30, 10e9, 8e9)))

FACTS = (
    StepFacts("conv 8x8", "key", "sketch 1,2", 1_000_000, 512, 10e-6),
    StepFacts("copy", "", "", 0, 1 << 20, None),
)


def test_figures_follow_from_medians() -> None:
    times = iter([[1, 1], [20_000, 200_000], [30_000, 100_000], [10_000, 300_000]])
    profile = measure_profile(lambda: next(times), FACTS, PEAKS, 3)
    first, second = profile.steps
    assert (first.seconds, second.seconds) == pytest.approx((20e-6, 200e-6))
    assert (first.share, second.share) == pytest.approx((1 / 11, 10 / 11))
    assert profile.seconds == pytest.approx(220e-6)
    assert first.flops_per_second == pytest.approx(50e9)
    assert second.bytes_per_second == pytest.approx((1 << 20) / 200e-6)
    # Ten microseconds of arithmetic at the peak; 105 of traffic with main memory.
    assert (first.roofline, second.roofline) == pytest.approx((0.5, (1 << 20) / 10e9 / 200e-6))


@pytest.mark.parametrize("kernel_for", [native, mixed()], ids=["native", "mixed"])
def test_every_step_of_a_model_is_timed(graph: Graph, kernel_for: object) -> None:
    executable = compile_model(Model.of(graph), kernel_for)  # type: ignore[arg-type]
    profile = executable.profile(inputs(0), runs=3, peaks=PEAKS)
    assert [step.facts for step in profile.steps] == list(executable.facts)
    assert len(profile.steps) == executable.steps
    assert all(step.seconds > 0 for step in profile.steps)
    assert sum(step.share for step in profile.steps) == pytest.approx(1)
    with pytest.raises(ArgumentError, match="runs is 0"):
        executable.profile(inputs(0), runs=0, peaks=PEAKS)


@pytest.mark.parametrize("wide", [True, False])
def test_the_table_keeps_what_takes_longest(wide: bool) -> None:
    profile = measure_profile(lambda: [20_000, 200_000], FACTS, PEAKS, 1)
    written = StringIO()
    screen = Console(width=130, file=written)
    screen.print(table(profile, 2, wide))
    screen.print(table(profile, 1, wide))
    both, longest = written.getvalue().split("all")[:2]
    assert ("2.00x" in both, "sketch" in both) == (True, wide)
    assert ("1 copy" in longest, "0 conv" in longest, "1 more" in longest) == (True, False, True)


def test_json_has_the_task_and_the_record() -> None:
    first, second = as_json(measure_profile(lambda: [20_000, 0], FACTS, PEAKS, 1))
    assert (first["task"], first["candidate"], first["record"]) == ("key", "sketch 1,2", 10e-6)
    assert second["seconds"] == pytest.approx(1e-9)
    assert np.isfinite(second["bytes_per_second"])
