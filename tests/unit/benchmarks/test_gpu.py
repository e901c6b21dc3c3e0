"""The script for GPUs, tried out on the CPU that stands in for one."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from ansorlite.cache.disk import CACHE_VARIABLE
from ansorlite.target import resolve
from ansorlite.task import Task
from benchmarks.gpu import __main__ as script
from benchmarks.gpu import right
from benchmarks.gpu.apart import Apart
from benchmarks.gpu.cases import FAMILIES, SMALL, in_order
from benchmarks.gpu.model_cases import ModelCase
from benchmarks.gpu.page import page
from benchmarks.gpu.row import Row
from benchmarks.gpu.work import COPY, Order
from tests.cupy_stand_in import StandIn
from tests.unit.benchmarks import gpu_process


def test_every_case_is_a_computation_and_each_family_comes_first_once() -> None:
    cases = in_order(FAMILIES)
    assert [case.family for case in cases[: len(FAMILIES)]] == [family.name for family in FAMILIES]
    assert len({(case.family, case.name) for case in cases}) == len(cases) == sum(len(family.cases) for family in FAMILIES)
    for case in cases:
        assert isinstance(case, ModelCase) or Task(case.tensors(), resolve("h100")).dag.flops >= 0


def test_it_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "RIGHT", gpu_process.CHECKED)
    monkeypatch.setattr(script, "BEGIN", gpu_process.in_a_moment)
    options = ["--target", "emulated", "--small", "--trials", "0", "--case", "product32", "--case", "sum"]
    options += ["--database", str(tmp_path / "gpu.db"), "--page", str(tmp_path / "page.md"), "--commit", "c0ffee"]
    stopped = CliRunner().invoke(script.main, [*options, "--budget", "-1"])
    assert stopped.exit_code == 1, stopped.output
    assert "not reached: right by hand: softmax" in stopped.output
    assert "not reached: product32 16x16x16" in stopped.output
    assert "| 16x16x16 | not reached |" in (tmp_path / "page.md").read_text()
    done = CliRunner().invoke(script.main, options)
    assert done.exit_code == 0, done.output
    assert "right matmul bias relu: numpy" in done.output
    assert "product32 16x16x16: " in done.output
    assert "memory sum_8x32: " in done.output
    page = (tmp_path / "page.md").read_text()
    assert "commit c0ffee" in page
    assert "| numpy |" in page
    assert "## Not reached\n\nmemory softmax_8x32, " in page
    assert all(f"## {family.name}" in page for family in SMALL)
    # What is done is not done again, and the last line may be cut off.
    with (tmp_path / "gpu.jsonl").open("a") as file:
        file.write('{"family": "memo')
    monkeypatch.setattr(script, "BEGIN", None)
    assert CliRunner().invoke(script.main, options).exit_code == 0


def test_all_of_it_runs_through_on_a_gpu_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's stand-in, whose clock counts blocks: every family, checked, timed, and on the page."""
    pytest.importorskip("torch", reason="models are written in PyTorch: pip install 'ansorlite[torch]'")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(script, "RIGHT", gpu_process.CHECKED)
    monkeypatch.setattr(script, "ABOUT", (COPY,))  # a stand-in is too slow to be calibrated
    monkeypatch.setattr(script, "BEGIN", gpu_process.on_a_stand_in)
    options = ["--target", "cuda", "--small", "--trials", "0", "--database", str(tmp_path / "gpu.db")]
    with StandIn().installed():
        done = CliRunner().invoke(script.main, [*options, "--page", str(tmp_path / "page.md")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.md").read_text()
    assert "There: CUDA 13000 (driver), CuPy 0." in page
    for family in SMALL:
        for case in family.cases:
            assert f"{family.name} {case.name}: " in done.output
            assert f"| {case.name} | " in page
    assert "| not reached |" not in page
    assert "## Not reached\n\nNothing." in page


def test_what_hangs_or_breaks_the_gpu_costs_its_row(tmp_path: Path) -> None:
    def order(name: str) -> Order:
        return Order(right.FAMILY, name, "emulated", "a GPU", True, 0, 0.0, tmp_path / "gpu.db")

    with Apart(gpu_process.broken) as apart:
        fine = apart.do(order("fine"), 60.0)
        assert apart.do(order("again"), 60.0).reference == fine.reference, "one process"
        assert apart.do(order("hangs"), 0.5).wrong == "not done after 0.5 s"
        next_one = apart.do(order("fine"), 60.0)
        assert (next_one.wrong, next_one.reference != fine.reference) == ("", True)
        assert apart.do(order("dies"), 60.0).wrong == "the process that had the GPU has died"
        assert apart.do(order("breaks"), 60.0).wrong == "the GPU is lost"
        assert not any(psutil.pid_exists(int(row.reference)) for row in (fine, next_one))


def test_what_was_never_begun_comes_before_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "RIGHT", ())
    monkeypatch.setattr(script, "ABOUT", ())
    asked: list[str] = []

    def do(_: Apart, order: Order, seconds: float) -> Row:
        assert 0 < seconds < 600
        asked.append(order.case)
        wrong, unfinished = "no" if len(asked) == 1 else "", len(asked) == 2
        return Row(order.family, order.case, order.device, wrong, 1.0, trials=3, unfinished=unfinished)

    monkeypatch.setattr(Apart, "do", do)
    options = ["--target", "emulated", "--small", "--case", "memory", "--database", str(tmp_path / "gpu.db")]
    for _ in range(2):
        CliRunner().invoke(script.main, options)
    names = [case.name for case in SMALL[1].cases]
    assert asked == [*names, names[1], names[0]]


def test_rows_of_the_page_and_what_is_to_be_reached() -> None:
    family = next(family for family in FAMILIES if family.name == "product16")
    rows = {("product16", name): Row("product16", name, "a GPU", "", 2.0, 1.0, trials=64, pace=50.0) for name in family.large}
    rows["product16", "512x512x512"] = Row("product16", "512x512x512", "a GPU", "", 1.0, 4.0)
    rows["device", "copy"] = Row("device", "copy", "a GPU", "", bandwidth=3e12)
    told = page([family], rows, "a GPU", "c0ffee")
    assert "Geometric mean × 1.00 (3 of 11 cases); to be reached: 1.0." in told
    assert "Of 4096x4096x4096, 8192x8192x8192: × 0.50 (2 of 2 cases); to be reached: 0.9." in told
    assert "| 8192x8192x8192 | 2000000.0 | 1000000.0 | 0.50 |  | 64 | 50 s |  |" in told
    assert "A copy moves 3000 GB/s" in told


def test_programs_are_drawn_and_judged() -> None:
    found = right.check("by hand: transpose", resolve("emulated"))
    assert (found.wrong, found.reference) == ("", "numpy")
    drawn = right.check("attention", resolve("emulated"))
    assert drawn.wrong == ""
    assert drawn.trials > 1, "one of each sketch"
    assert len(set(right.NAMES)) == len(right.BY_HAND) + len(right.COMPUTATIONS), "each has a name of its own"


def test_a_model_that_has_not_had_its_trials_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "RIGHT", ())
    asked: list[int] = []

    def do(_: Apart, order: Order, seconds: float) -> Row:
        assert 0 < seconds < 600
        if order.family != "model":
            return Row(order.family, order.case, order.device, "")
        asked.append(order.trials)
        assert 0 < order.limit <= 240
        assert order.database == tmp_path / "gpu.db"
        return Row("model", order.case, order.device, "", 1.0, trials=7, unfinished=len(asked) < 2, reference="PyTorch")

    monkeypatch.setattr(Apart, "do", do)
    options = ["--target", "emulated", "--small", "--trials", "9", "--case", "model", "--database", str(tmp_path / "gpu.db")]
    stopped = CliRunner().invoke(script.main, [*options, "--page", str(tmp_path / "page.md")])
    assert stopped.exit_code == 1
    assert "not reached: model bert1_b1, all of its trials (7 were made)" in stopped.output
    assert "| 7 so far | | PyTorch |" in (tmp_path / "page.md").read_text().replace("|  |", "| |")
    for _ in range(2):
        assert CliRunner().invoke(script.main, options).exit_code == 0
    assert asked == [9, 9]


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    refused = CliRunner().invoke(script.main, [])
    assert refused.exit_code == 2
    assert "through CuPy, which is not here" in refused.output
