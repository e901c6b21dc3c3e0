"""The examples that Python runs, where no GPU is."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_kernel_for_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "gpu.py"))["main"]("emulated", 2)
    limits, measured, right = capsys.readouterr().out.splitlines()
    assert limits.startswith("emulated: 2 multiprocessors; a block has at most 64 threads")
    assert measured.startswith("2 programs measured; the best takes ")
    assert right == "it is right"
