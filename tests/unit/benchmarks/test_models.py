"""The benchmark of models: a small one through all of it; its rows survive their file, and its table says what they say."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[peers]'")
pytest.importorskip("onnxscript", reason="PyTorch's exporter needs onnxscript: pip install 'ansorlite[peers]'")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[peers]'")

import torch
from click.testing import CliRunner

from ansorlite.records.measurement import Outcome
from ansorlite.sketch.candidate import NAIVE
from ansorlite.tuner.result import Stop, TaskResult, Trial, TuneResult
from benchmarks.common.spread import Spread
from benchmarks.models import command
from benchmarks.models.exported import exported, normal
from benchmarks.models.page import results
from benchmarks.models.quantized import dynamic, static
from benchmarks.models.results import FEW, OURS, UNTUNED, Results, Run, Timing, Tuning
from benchmarks.models.session import nearly, relative_difference
from benchmarks.models.zoo.mlp import MLP
from benchmarks.models.zoo.resnet import Block
from benchmarks.models.zoo.tcn import TCN
from tests.unit.measure.tasks import matmul

RUN = Run(threads=1, trials=4, seed=0, time_limit=None)
SPREAD = Spread(1.0, 2.0, 3.0)
TIMING = Timing(
    "a", RUN, 2, 0, {OURS: 1e-3, "torch": 2e-3}, {UNTUNED: Spread(2, 2, 2), "torch": SPREAD}, 0.5, {OURS: 1e-6}, 0.0, 1.0
)

_SMALL = exported(lambda: MLP((12, 16, 4)), {"x": normal(1, 3, 12)})
SMALL = {
    "mlp": _SMALL,
    "static": static(_SMALL, ["MatMul"]),
    "dynamic": dynamic(_SMALL),
    "block": exported(lambda: Block(2, 4, 4, 2, bottleneck=True), {"x": normal(1, 4, 9, 9)}),
    "tcn": exported(lambda: TCN(3, 4, 2), {"x": normal(1, 3, 17)}),
}


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, dict[str, object]]:
    """The command on small models: its timings, by model."""
    monkeypatch.setattr(command, "MODELS", SMALL)
    threads = torch.get_num_threads()
    found = CliRunner().invoke(
        command.main, ["--threads", "1", "--seconds", "0.01", "--json", *arguments], catch_exceptions=False
    )
    torch.set_num_threads(threads)
    assert found.exit_code == 0, found.output
    return {timing["model"]: timing for timing in json.loads(found.stdout)["timings"]}


def test_models_are_right_untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, "--trials", "0", "--against", "onnxruntime,torch")
    assert list(found) == list(SMALL)
    for name, timing in found.items():
        differences = timing["differences"]
        assert isinstance(differences, dict)
        assert set(differences) == {OURS, "onnxruntime"} | (set() if name in ("static", "dynamic") else {"torch"})
        assert max(differences.values()) < 1e-4


def test_models_in_bfloat16_differ_by_its_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, "--trials", "0", "--against", "torch", "--precision", "bfloat16")
    for name in ("mlp", "block", "tcn"):
        differences = found[name]["differences"]
        assert isinstance(differences, dict)
        assert all(1e-4 < differences[who] < 0.1 for who in (OURS, "torch"))


def test_a_model_is_tuned_once_and_its_page_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    database, page = tmp_path / "models.db", tmp_path / "page.md"
    arguments = (
        "--model",
        "mlp",
        "--trials",
        "2",
        "--untuned",
        "--few",
        "1",
        "--against",
        "",
        "--database",
        str(database),
        "--page",
        str(page),
    )
    first = run(monkeypatch, *arguments)
    assert first == run(monkeypatch, *arguments)
    assert set(first["mlp"]["seconds"]) == {OURS, UNTUNED, FEW}  # type: ignore[call-overload]
    assert first["mlp"]["few"] == 1
    assert "| mlp |" in page.read_text()


def test_an_unknown_model_is_named() -> None:
    found = CliRunner().invoke(command.main, ["--model", "resnet19"])
    assert found.exit_code == 2
    assert "there is no model resnet19; the models are: all, light_bvlc_alexnet" in found.output


def test_rows_come_back_from_their_file(tmp_path: Path) -> None:
    rows = (Tuning("a", RUN, 8, 0, 3.0, 2.5, 0.0), TIMING)
    path = tmp_path / "rows.jsonl"
    for row in rows:
        Results(path).add(row)
    assert tuple(Results(path).rows) == rows
    path.write_text('{"kind": "Other"}\n')
    with pytest.raises(ValueError, match="move it away"):
        Results(path)


def test_seconds_of_tuning_add_up_over_runs_that_go_on() -> None:
    found = Results(None)
    more = replace(RUN, trials=9)
    for row in (
        Tuning("a", RUN, 8, 0, 3.0, 2.5, 0.0),
        Tuning("a", RUN, 8, 5, 2.0, None, 0.0),
        Tuning("a", more, 18, 8, 7.0, None, 0.0),
    ):
        found.add(row)
    assert found.tuning_seconds(RUN) == {"a": 5.0}
    assert found.tuning_seconds(more) == {"a": 12.0}
    assert (found.nearly(RUN), found.nearly(more)) == ({"a": 2.5}, {})


def test_when_a_model_was_nearly_as_fast_as_in_the_end() -> None:
    tasks = tuple(
        TaskResult(task, (uses,), None, latency, None, 2, 0) for task, uses, latency in ((matmul(8), 2, 1.0), (matmul(9), 1, 2.0))
    )
    latencies = ((0, 4.0, 1.0), (1, 9.0, 2.0), (1, 2.4, 3.0), (0, 1.0, 4.0), (0, 3.0, 5.0), (1, 2.0, 6.0))
    history = tuple(Trial(task, NAIVE, Outcome.OK, seconds, None, at, False) for task, seconds, at in latencies)
    result = TuneResult(4.0, 6, 0, 7.0, history, tasks, {}, Stop.TRIALS, 0.0)
    assert nearly(result) == 4.0  # 2 * 1.0 + 2.4, where nine tenths of the speed of 4.0 are 4.44
    assert nearly(replace(result, restored=1)) is None


def test_the_table_says_what_is_wrong() -> None:
    wrong = replace(TIMING, model="b", differences={OURS: 1e-2}, ratios={"torch": Spread(0.5, 0.5, 0.5)})
    table = results({"a": TIMING, "b": wrong}, {"a": 3.0}, {"a": 2.0})
    assert table.header == ("model", "ours", "÷ torch", "untuned", "ready in", "tuned in", "90% after", "difference")
    assert table.rows[0] == ("a", "1.00 ms", "2.00 (1.00–3.00)", "0.50", "500 ms", "3.00 s", "2.00 s", "1e-06")
    assert table.rows[1][0] == "b **wrong**"
    assert table.rows[2][2:4] == ("1.00", "0.50")
    assert table.notes == ("b: ours differs from onnxruntime by 1e-02.",)
    rounded = replace(wrong, differences={OURS: 1e-2, "onnxruntime": 1e-2})
    assert results({"b": rounded}, {}, {}).rows[0][0] == "b"
    assert results({"b": replace(rounded, differences={OURS: 2e-2, "onnxruntime": 1e-2})}, {}, {}).rows[0][0] == "b **wrong**"


def test_differences_are_relative_to_large_elements_and_to_the_size_of_all() -> None:
    expected = np.array([10.0, 0.0, 0.0, 0.0], np.float32)
    assert relative_difference([expected], [expected]) == 0
    assert relative_difference([np.array([11, 0, 0, 0], np.float32)], [expected]) == pytest.approx(0.1)
    assert relative_difference([np.array([10, 1, 0, 0], np.float32)], [expected]) == pytest.approx(0.2)
    assert relative_difference([np.zeros(2)], [np.zeros(2)]) == 0
    for other in (expected.astype(np.float64), expected[:2], np.full(4, np.nan, np.float32)):
        assert relative_difference([other], [expected]) == math.inf
