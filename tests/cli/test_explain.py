"""``ansorlite explain`` and ``ansorlite calibrate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ansorlite import processor
from ansorlite.cache.disk import CACHE_VARIABLE
from ansorlite.cli import main
from ansorlite.machine.families import shipped
from ansorlite.machine.kept import keep, kept, machine_of

KERNELS = """
from ansorlite import te
def matmul(m, n, k):
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, name="k")
    return [A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")]
"""


def test_a_program_is_explained_beside_its_time(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    words = ["explain", f"{tmp_path / 'kernels.py'}:matmul", "--args", "64", "64", "64"]
    found = json.loads(CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False).stdout)
    assert found["measured"] > 0
    assert found["estimated"] == pytest.approx(sum(each["total"] for each in found["statements"]), rel=1e-6)
    assert found["regions"] == pytest.approx(sum(each["causes"]["region"] for each in found["statements"]), rel=1e-6)
    for each in found["statements"]:
        assert each["bound"] == max(each["causes"], key=each["causes"].get)
    shown = CliRunner().invoke(main, words, catch_exceptions=False).stdout
    assert "bound by" in shown
    assert "us estimated" in shown
    assert "us measured now" in shown


def test_a_target_that_cannot_run_is_explained_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    words = ["explain", f"{tmp_path / 'kernels.py'}:matmul", "--args", "64", "64", "64"]
    elsewhere = "neoverse-n1" if processor.ARCHITECTURE == "x86_64" else "haswell"
    done = CliRunner().invoke(main, [*words, "--target", elsewhere], catch_exceptions=False)
    assert done.exit_code == 0
    assert "not measured: this processor is" in done.stdout
    assert "arithmetic" in done.stdout
    estimated = [
        json.loads(CliRunner().invoke(main, [*words, "--json", "--target", name]).stdout)["estimated"]
        for name in ("neoverse-n1", "neoverse-v1")
    ]
    assert estimated[0] > estimated[1]


def test_a_program_for_a_gpu_is_explained_with_its_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    words = ["explain", f"{tmp_path / 'kernels.py'}:matmul", "--args", "64", "64", "64", "--target", "sm_80"]
    monkeypatch.setenv("ANSORLITE_ASSEMBLER", "driver")
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0
    assert "of them for launches" in done.stdout
    assert "registers estimated, no assembler was asked" in done.stdout
    (launch, *_) = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)["launches"]
    assert launch["registers"] is None
    assert launch["threads"] >= 16


def test_a_record_without_its_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    done = CliRunner().invoke(main, ["explain", f"{tmp_path / 'kernels.py'}:matmul", "--args", "8", "8", "8", "--candidate", "3"])
    assert done.exit_code == 2
    assert "give its --database, too" in done.output


def test_what_was_measured_is_used_and_what_is_damaged_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    kept.cache_clear()
    try:
        usual = shipped("some-cpu", "+avx2", 32)
        assert machine_of("some-cpu", "+avx2", 32) == usual
        measured = type(usual).of({**usual.as_dict(), "load": 0.75})
        keep("some-cpu", measured)
        assert machine_of("some-cpu", "+avx2", 32) == measured
        (file,) = (tmp_path / "cache").iterdir()
        assert file.name.startswith("machine-")
        assert file.name.endswith("some-cpu")
        file.write_bytes(b"damaged")
        kept.cache_clear()
        assert machine_of("some-cpu", "+avx2", 32) == usual
    finally:
        kept.cache_clear()
