"""``--target`` with GPUs: what stands in for one is tuned for and reported; what is not here is refused in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Call = Callable[..., Result]
CallJson = Callable[..., dict[str, Any]]

EMULATED = ("kernels.py:matmul", "--args", 16, 16, 16, "--target", "emulated", "--database", "t.db")


def test_emulated_from_tuning_to_the_report(call: Call, call_json: CallJson, folder: Path) -> None:
    tuned = call_json("tune", *EMULATED, "--trials", 2)
    assert tuned["trials"] == 2
    assert 0 < tuned["best_latency"] < 1
    assert call("run", *EMULATED).exit_code == 0
    explained = call("explain", *EMULATED)
    assert explained.exit_code == 0, explained.output
    assert "of them for launches" in explained.stdout
    assert call("report", "t.db", "-o", "page.html").exit_code == 0
    page = (folder / "page.html").read_text()
    assert "emulated: 2 multiprocessors; a block has at most 64 threads and 8,192 bytes of shared memory" in page


def test_what_is_known_of_a_gpu(call_json: CallJson) -> None:
    told = call_json("target", "--target", "h100")
    assert told["key"] == "cuda nvptx64 sm_90a v16 t1 NVIDIA-H100-80GB-HBM3 132"
    assert told["gpu"].startswith("NVIDIA H100 80GB HBM3: 132 multiprocessors; a block has at most 1,024 threads")


@pytest.mark.parametrize("target", ["cuda", "cuda:1", "opencl", "opencl:7", "h100"])
def test_what_is_not_here_is_refused_in_one_sentence(call: Call, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    refused = call("tune", "kernels.py:scale", "--target", target, "--trials", 1, "--database", "t.db")
    assert refused.exit_code != 0
    (said,) = refused.stderr.replace("this file prints when it is imported\n", "").splitlines()
    assert said.startswith("Error: ")
    assert ("pyopencl, which is not here" if "opencl" in target else "CuPy, which is not here") in said
