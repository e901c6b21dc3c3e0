"""The script for GPUs, tried out on the CPU that stands in for one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ansorlite.target import resolve
from ansorlite.task import Task
from benchmarks.gpu import __main__ as script
from benchmarks.gpu.cases import FAMILIES, SMALL, in_order
from tests.gpu_programs import SMALL as PROGRAMS


def test_every_case_is_a_computation_and_each_family_comes_first_once() -> None:
    cases = in_order(FAMILIES)
    assert [case.family for case in cases[: len(FAMILIES)]] == [family.name for family in FAMILIES]
    assert len({(case.family, case.name) for case in cases}) == len(cases)
    for case in cases:
        assert Task(case.tensors(), resolve("h100")).dag.flops >= 0


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


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    refused = CliRunner().invoke(script.main, [])
    assert refused.exit_code == 2
    assert "through CuPy, which is not here" in refused.output
