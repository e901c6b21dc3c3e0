"""When a tuning begins with measuring the machine, and what it does then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import ansorlite as al
from ansorlite.api import tune as verb
from ansorlite.cache.disk import CACHE_VARIABLE
from ansorlite.calibration import automatic
from ansorlite.calibration.automatic import CALIBRATE_VARIABLE, calibrated, wanted
from ansorlite.machine.families import FAMILIES, MIDDLE, WIDE, shipped
from ansorlite.machine.kept import kept
from ansorlite.target import Target, process_target
from tests import workloads


@pytest.fixture
def unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    """This machine, as if nothing were known of its processor."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.delenv(CALIBRATE_VARIABLE)
    monkeypatch.setattr(automatic, "FAMILIES", {})
    monkeypatch.setattr(automatic.llvm, "get_host_cpu_name", lambda: "new-cpu")
    kept.cache_clear()
    here = process_target()
    yield replace(here, cpu="new-cpu", machine=shipped("new-cpu", here.features, here.vector_bytes))
    kept.cache_clear()


def test_only_a_long_tuning_on_an_unknown_machine_begins_with_measuring_it(
    unknown: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wanted(unknown, 64, None)
    assert wanted(unknown, 64, 600.0)
    assert not wanted(unknown, 63, None)
    assert not wanted(unknown, 1000, 60.0)
    assert not wanted(replace(unknown, machine=replace(MIDDLE, load=0.7)), 64, None)
    assert not wanted(replace(unknown, cpu="another-cpu"), 64, None)
    monkeypatch.setattr(automatic, "FAMILIES", {"new-cpu": MIDDLE})
    assert not wanted(unknown, 64, None)
    monkeypatch.setattr(automatic, "FAMILIES", {})
    monkeypatch.setenv(CALIBRATE_VARIABLE, "0")
    assert not wanted(unknown, 64, None)


def test_an_unknown_processor_has_the_row_of_one_with_its_instructions() -> None:
    assert shipped("new-cpu", "+avx512f,+amx-tile", 64) == FAMILIES["sapphirerapids"]
    assert shipped("new-cpu", "+avx512f,-amx-tile", 64) == WIDE
    assert shipped("new-cpu", "+avx2", 32) == MIDDLE
    assert shipped("znver4", "+amx-tile", 64) == FAMILIES["znver4"]


def test_what_is_measured_is_used_and_kept(unknown: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    found = replace(unknown.machine, load=0.7)
    monkeypatch.setattr(automatic, "calibrate", lambda *_: found)
    assert calibrated(unknown).machine == found
    assert kept("new-cpu") == found
    assert not wanted(unknown, 64, None)


def test_a_tuning_that_begins_so_says_so_and_searches_under_the_measured_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = al.Task(workloads.matmul(16, 16, 16))
    found, asked, seen = replace(task.target.machine, load=0.7), [], []
    make_state = verb.task_state

    def state(task: al.Task, *others: object) -> object:
        seen.append(task.target.machine)
        return make_state(task, *others)  # type: ignore[arg-type]

    def measured(target: Target) -> Target:
        return replace(target, machine=found)

    monkeypatch.setattr(verb, "wanted", lambda _, *limits: asked.append(limits) or True)
    monkeypatch.setattr(verb, "calibrated", measured)
    monkeypatch.setattr(verb, "task_state", state)
    al.tune(task, trials=2, progress=True)
    assert asked == [(2, None)]
    assert seen == [found]
    assert "calibrating first: nothing is known of the processor" in capsys.readouterr().err
