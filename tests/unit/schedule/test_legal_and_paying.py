"""What pays is asked when sketches are derived, never when a trace is replayed: constants may change, programs stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pytest

from ansorlite.analysis import conversion, dot
from ansorlite.loops.printer import text
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import NAMED
from ansorlite.task import Task
from tests import workloads
from tests.targets import WIDE

MAKE: Final[Mapping[str, Callable[[], Task]]] = {
    "both factors converted": lambda: Task(workloads.widened_matmul(32, 32, 4, "float16"), WIDE),
    "one factor converted": lambda: Task(workloads.widened_matmul(8, 32, 4, "float16"), WIDE),
    "whole words": lambda: Task(workloads.quantised_matmul(16, 16, 8), NAMED["cascadelake"]),
    "padded words": lambda: Task(workloads.quantised_matmul(16, 16, 7), NAMED["cascadelake"]),
}


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("pays", ["everything", "nothing"])
def test_a_trace_outlives_what_paid_when_it_was_made(name: str, pays: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, task = np.random.default_rng(0), MAKE[name]()
    before: dict[str, str] = {}
    for sketch in derive(task):
        assert "s.convert" in sketch.text or "s.tensorize" in sketch.text
        before |= {sketch.candidate(row).trace: text(sketch.lower(row)) for row in TileSpace(sketch).sample(2, rng)}
    least, padding = (0, 1e9) if pays == "everything" else (1 << 40, -1.0)
    for module in (conversion, dot):
        monkeypatch.setattr(module, "_LEAST_REUSE", least)
    monkeypatch.setattr(dot, "_MOST_PADDING", padding)
    # What was found out about a computation stays with it; another one knows only the new constants.
    again = MAKE[name]()
    if pays == "nothing":
        assert not any("s.convert" in sketch.text or "s.tensorize" in sketch.text for sketch in derive(again)), "rules ask"
    assert {trace: text(lower(again, Candidate(trace))) for trace in before} == before
