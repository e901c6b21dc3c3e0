"""The script for GPUs, tried out on the CPU that stands in for one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.runtime import device_peaks
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.peaks import MemoryLevel
from ansorlite.runtime.timing import TimingSettings
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from benchmarks.gpu import __main__ as script
from benchmarks.gpu import models, session
from benchmarks.gpu.cases import FAMILIES, SMALL, in_order
from benchmarks.gpu.model_cases import ModelCase
from benchmarks.gpu.session import Row
from tests.cupy_stand_in import StandIn
from tests.gpu_programs import SMALL as PROGRAMS


def test_every_case_is_a_computation_and_each_family_comes_first_once() -> None:
    cases = in_order(FAMILIES)
    assert [case.family for case in cases[: len(FAMILIES)]] == [family.name for family in FAMILIES]
    assert len({(case.family, case.name) for case in cases}) == len(cases)
    for case in cases:
        assert isinstance(case, ModelCase) or Task(case.tensors(), resolve("h100")).dag.flops >= 0


def test_it_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "GOLDEN", {"softmax": PROGRAMS["softmax"]})
    monkeypatch.setattr(script, "_LAST", 1e-3)
    options = ["--target", "emulated", "--small", "--trials", "0", "--case", "product32", "--case", "sum"]
    options += ["--database", str(tmp_path / "gpu.db"), "--page", str(tmp_path / "page.md")]
    stopped = CliRunner().invoke(script.main, [*options, "--budget", "0"])
    assert stopped.exit_code == 1, stopped.output
    assert "right softmax: yes" in stopped.output
    assert "not reached: product32 16x16x16" in stopped.output
    assert "| 16x16x16 | not reached |" in (tmp_path / "page.md").read_text()
    monkeypatch.setattr(script, "_checked", None)  # it is not asked again
    done = CliRunner().invoke(script.main, options)
    assert done.exit_code == 0, done.output
    assert "product32 16x16x16: " in done.output
    assert "memory sum_8x32: " in done.output
    page = (tmp_path / "page.md").read_text()
    assert "| numpy |" in page
    assert all(f"## {family.name}" in page for family in SMALL)


def test_all_of_it_runs_through_on_a_gpu_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's stand-in, whose clock counts blocks: every family, checked, timed, and on the page."""
    pytest.importorskip("torch", reason="models are written in PyTorch: pip install 'ansorlite[torch]'")
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    monkeypatch.setattr(script, "GOLDEN", {"softmax": PROGRAMS["softmax"]})
    monkeypatch.setattr(session, "TURN", TimingSettings(min_seconds=0.0, min_repeats=1, repeat_seconds=1e-6))
    monkeypatch.setattr(models, "TURN", session.TURN)
    monkeypatch.setattr(device_peaks, "_level", lambda _device, _move, name, nbytes: MemoryLevel(name, nbytes, 1e9, 1e9))
    device_of.cache_clear()
    options = ["--target", "cuda", "--small", "--trials", "0", "--database", str(tmp_path / "gpu.db")]
    with StandIn().installed() as gpu:
        done = CliRunner().invoke(script.main, [*options, "--page", str(tmp_path / "page.md")])
    device_of.cache_clear()
    assert done.exit_code == 0, done.output
    assert gpu.gpu.launched
    page = (tmp_path / "page.md").read_text()
    for family in SMALL:
        for case in family.cases:
            assert f"{family.name} {case.name}: " in done.output
            assert f"| {case.name} | " in page
    assert "not reached" not in page


def test_a_model_that_has_not_had_its_trials_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "GOLDEN", {})
    asked: list[int] = []

    def run_model(case: ModelCase, target: Target, trials: int, limit: float, database: Path) -> Row:
        asked.append(trials)
        assert 0 < limit <= 240
        assert database == tmp_path / "gpu.db"
        return Row(case.family, case.name, target.key, "", 1.0, 0.0, 0.0, 7, 1.0, "PyTorch", 0.0, len(asked) < 2)

    monkeypatch.setattr(script, "run_model", run_model)
    options = ["--target", "emulated", "--small", "--trials", "9", "--case", "model", "--database", str(tmp_path / "gpu.db")]
    stopped = CliRunner().invoke(script.main, [*options, "--page", str(tmp_path / "page.md")])
    assert stopped.exit_code == 1
    assert "not reached: model bert1_b1, all of its trials (7 were made)" in stopped.output
    assert "PyTorch, 7 trials so far" in (tmp_path / "page.md").read_text()
    for _ in range(2):
        assert CliRunner().invoke(script.main, options).exit_code == 0
    assert asked == [9, 9]


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    refused = CliRunner().invoke(script.main, [])
    assert refused.exit_code == 2
    assert "through CuPy, which is not here" in refused.output
