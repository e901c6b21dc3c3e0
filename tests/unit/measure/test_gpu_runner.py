"""One process has the GPU, and is replaced when a program has broken it: that costs one measurement."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.errors import TargetError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.records import Outcome
from ansorlite.target import GPUS, resolve
from tests.cupy_stand_in import StandIn
from tests.unit.measure.fake_backend import faked

SETTINGS = MeasureSettings(
    run_seconds=4.0,
    check_seconds=60.0,
    slow_factor=1e9,
    hopeless_factor=1e9,
    repeats=2,
    repeat_seconds=1e-7,
    builders=1,
    backend="tests.unit.measure.cuda_backend",
)


@pytest.fixture(scope="module")
def task() -> al.Task:
    a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="b")
    with StandIn().installed():
        target = resolve("cuda")
    return al.Task([a, b, te.compute((4,), lambda i: a[i] + b[i] * 3.0, name="c")], target)


@pytest.fixture(scope="module")
def measurer(task: al.Task) -> Iterator[Measurer]:
    with StandIn().installed():
        opened = Measurer(task.target, SETTINGS)
    with opened as measurer:
        yield measurer


@pytest.mark.parametrize(
    ("name", "outcome", "words"),
    [
        ("touches what is nobody's", Outcome.CRASH, ["DeviceLostError", "GPU 0 fails", "ILLEGAL_ADDRESS"]),
        ("writes beside its arrays", Outcome.CRASH, ["DeviceLostError", "written beside its arrays"]),
        ("hangs", Outcome.RUN_TIMEOUT, ["not done after 4.0 s, while the program ran"]),
        ("computes something else", Outcome.WRONG_RESULT, ["elements of c are wrong"]),
        ("is no code", Outcome.CRASH, ["the driver refuses to load the program"]),
        ("wants too much", Outcome.CRASH, ["needs 1048576 bytes of shared memory"]),
    ],
)
def test_a_fault_costs_one_record(measurer: Measurer, task: al.Task, name: str, outcome: Outcome, words: list[str]) -> None:
    failed, fine = measurer.measure(task, [faked(name), faked("good")])
    assert (failed.outcome, failed.latency) == (outcome, None)
    for word in words:
        assert word in failed.error
    assert (fine.outcome, fine.error) == (Outcome.OK, "")
    assert fine.latency == pytest.approx(1e-6), "on the clock of the GPU"


def test_without_a_gpu_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TargetError, match="cannot run here: programs for CUDA run through CuPy"), Measurer(GPUS["h100"]):
        pass
