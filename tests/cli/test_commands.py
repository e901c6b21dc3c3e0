"""Each command, called as a user calls it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import Result

import ansorlite as al
from ansorlite.cli.main import COMMANDS
from ansorlite.report.text import duration
from ansorlite.sketch.candidate import NAIVE
from tests.cli.conftest import TUNE

Call = Callable[..., Result]
CallJson = Callable[..., dict[str, Any]]


def test_help_names_every_command(call: Call) -> None:
    text = call("--help").stdout
    assert all(name in text for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_an_example_of_itself(call: Call, command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"ansorlite {command} " in result.stdout
    assert "--json" in result.stdout


def test_version(call: Call) -> None:
    assert call("--version").stdout == "0.1.0\n"


def test_tune_tells_what_it_found(database: dict[str, Any]) -> None:
    assert (database["trials"], database["restored"]) == (4, 0)
    assert 0 < database["best_latency"] < 1
    assert database["seconds"] == pytest.approx(sum(database["phases"].values()))
    (task,) = database["tasks"]
    assert task["trials"] == 4
    assert task["naive_latency"] > 0
    assert task["candidate"].startswith("def schedule(s):\n    ")


def test_tune_again_has_nothing_left_to_do(database: dict[str, Any], call_json: CallJson) -> None:
    again = call_json(*TUNE)
    assert (again["restored"], again["trials"]) == (4, 4)
    assert again["best_latency"] == database["best_latency"]


def test_tune_says_the_objective_and_why_it_stopped(database: dict[str, Any], call: Call, call_json: CallJson) -> None:
    assert (database["stopped"], database["objective"]["name"]) == ("trials", "latency")
    assert database["objective"]["value"] == database["best_latency"]
    bounded = (*TUNE[:-4], "--trials", 400, "--database", "t.db", "--objective", "bounds", "--bound", "kernels.py:matmul=1s")
    told = call_json(*bounded)
    assert (told["trials"], told["stopped"], told["objective"]) == (4, "gain", {"name": "bounds", "value": 1.0})
    assert "stopped: every model is below its bound" in call(*bounded, "--no-progress").stdout


def test_tune_several_models(folder: Path, call: Call, call_json: CallJson) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    for name, shape in (("a.onnx", (8, 8)), ("b.onnx", ("n", 8))):
        ends = [onnx.helper.make_tensor_value_info(end, onnx.TensorProto.FLOAT, shape) for end in "xy"]
        onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", ends[:1], ends[1:])), folder / name)
    words = ("tune", "a.onnx", "b.onnx", "--shape", "b.onnx:x=16,8", "--objective", "geomean", "--trials", 4)
    told = call_json(*words)
    assert [model["name"] for model in told["models"]] == ["a.onnx", "b.onnx"]
    assert all(0 < model["best_latency"] <= model["naive_latency"] for model in told["models"])
    table = call(*words, "--no-progress").stdout
    assert "geometric mean of speed-ups" in table
    assert "b.onnx" in table


@pytest.mark.usefixtures("database")
def test_tune_prints_a_table_for_people(call: Call) -> None:
    result = call(*TUNE, "--no-progress")
    assert result.exit_code == 0
    assert "c 16x16 -> 16x16" in result.stdout
    assert "as fast as the loops as written; 4 trials (4 of them from earlier runs)" in result.stdout
    assert "kept in t.db" in result.stdout


def test_run_computes_what_the_kernel_says(call_json: CallJson, folder: Path) -> None:
    a, b = np.random.default_rng(0).random((2, 16, 16), dtype=np.float32)
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    inputs = ("--input", "a=a.npy", "--input", "b=b.npy")
    told = call_json("run", "kernels.py:matmul", "--args", 16, 16, 16, *inputs, "--output-dir", "out")
    assert told["random_inputs"] == []
    (output,) = told["outputs"]
    assert (output["name"], output["shape"], output["dtype"]) == ("c", [16, 16], "float32")
    np.testing.assert_allclose(np.load(output["file"]), a @ b, rtol=1e-5)


def test_run_makes_the_same_random_inputs_for_the_same_seed(call_json: CallJson) -> None:
    for place, seed in (("x", 1), ("y", 1), ("z", 2)):
        told = call_json("run", "kernels.py:scale", "--seed", seed, "--output-dir", place)
        assert told["random_inputs"] == ["a"]
    x, y, z = (np.load(f"{place}/out.npy") for place in "xyz")
    assert np.array_equal(x, y)
    assert not np.array_equal(x, z)


@pytest.mark.usefixtures("database")
def test_report_writes_a_page(call: Call, call_json: CallJson) -> None:
    result = call("report", "t.db", "-o", "page.html")
    assert result.stdout == "1 task of t.db in page.html\n"
    told = call_json("report", "t.db", "-o", "again.html")
    (task,) = told["tasks"]
    assert task["trials"] == 4
    assert 0 < task["best_latency"] <= task["naive_latency"]
    assert task["name"] in Path("again.html").read_text().replace("&gt;", ">")
    assert Path("page.html").read_text() == Path("again.html").read_text()
    assert "nowhere/page.html cannot be written (" in call("report", "t.db", "-o", "nowhere/page.html").stderr


def test_tensors_that_nobody_named_are_told_apart(call_json: CallJson, folder: Path) -> None:
    (folder / "nameless.py").write_text(
        "from ansorlite import te\n"
        "def difference(n):\n"
        "    a, b = te.placeholder((n,)), te.placeholder((n,))\n"
        "    return [a, b, te.compute((n,), lambda i: a[i] - b[i]), te.compute((n,), lambda i: b[i] - a[i])]\n"
    )
    np.save(folder / "two.npy", np.full(4, 2.0, np.float32))
    np.save(folder / "one.npy", np.ones(4, np.float32))
    inputs = ("--input", "placeholder=two.npy", "--input", "placeholder_2=one.npy")
    told = call_json("run", "nameless.py:difference", "--args", 4, *inputs, "--output-dir", "out")
    assert {output["name"]: np.load(output["file"])[0] for output in told["outputs"]} == {"compute": 1, "compute_2": -1}


@pytest.mark.usefixtures("database")
def test_run_uses_the_database(call: Call) -> None:
    result = call("run", "kernels.py:matmul", "--args", 16, 16, 16, "--database", "t.db")
    assert result.exit_code == 0
    assert "16x16" in result.stdout


def test_bench_alone_and_against_the_naive_program(call_json: CallJson) -> None:
    alone = call_json("bench", "kernels.py:scale", "--seconds", 0.01)
    assert alone["ours"] > 0
    assert (alone["against"], alone["ratio"]) == (None, None)
    both = call_json("bench", "kernels.py:scale", "--against", "naive", "--seconds", 0.01)
    assert both["ratio"] == pytest.approx(both["against"] / both["ours"])


def test_tasks_of_a_kernel(call_json: CallJson) -> None:
    (task,) = call_json("tasks", "kernels.py:matmul", "--args", 4, 5, 6)["tasks"]
    assert (task["name"], task["weight"], task["flops"]) == ("c 4x6 -> 4x5", 1, 2 * 4 * 5 * 6)


@pytest.mark.usefixtures("database")
def test_records_counts_and_lists(call: Call, call_json: CallJson) -> None:
    told = call_json("records", "t.db")
    assert sum(told["outcomes"].values()) == len(told["records"]) == 4
    default, naive, *_ = told["records"]
    assert "s.split(" in default["candidate"]
    assert naive["candidate"] == NAIVE.trace
    assert naive["outcome"] == "ok"
    assert naive["latency"] > 0
    assert "16x16" in naive["task"]
    assert "4 measurements" in call("records", "t.db").stdout


@pytest.mark.usefixtures("database")
def test_records_travel_as_json_lines(call: Call, call_json: CallJson) -> None:
    assert call("records", "t.db", "--export", "t.jsonl").exit_code == 0
    assert call("records", "t.db", "--export", "-").stdout == Path("t.jsonl").read_text()
    assert call_json("records", "copy.db", "--import", "t.jsonl")["imported"] == 4
    assert call_json("records", "copy.db", "--import", "t.jsonl")["imported"] == 0
    original, copy = call_json("records", "t.db"), call_json("records", "copy.db")
    assert original["outcomes"] == copy["outcomes"]
    assert [r["latency"] for r in original["records"]] == [r["latency"] for r in copy["records"]]


def test_imported_measurements_are_taken_up(database: dict[str, Any], call: Call, call_json: CallJson) -> None:
    call("records", "t.db", "--export", "t.jsonl")
    call("records", "other.db", "--import", "t.jsonl")
    again = call_json(*TUNE[:-1], "other.db")
    assert (again["restored"], again["best_latency"]) == (4, database["best_latency"])


def test_export_writes_a_library(call: Call, call_json: CallJson, folder: Path) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 8]) for name in "xy")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "relu", [x], [y])), folder / "relu.onnx")
    assert call_json("export", "relu.onnx", "--dim", "n=4", "-o", "m.so") == {"library": "m.so", "header": "m.h"}
    assert np.array_equal(al.load("m.so")(x=np.full((4, 8), -1, np.float32))["y"], np.zeros((4, 8)))
    told = call("export", "relu.onnx", "--dim", "n=4", "-o", "m.so", "--name", "relu").stdout
    assert told == "relu.onnx in m.so, its C functions in m.h\n"
    assert "relu_create(" in Path("m.h").read_text()
    assert "dimension 'n' is open" in call("export", "relu.onnx", "-o", "m.so").stderr


def test_bench_of_a_model_shows_each_kernel(call: Call, call_json: CallJson, folder: Path) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [8, 8]) for name in "xy")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "relu", [x], [y])), folder / "relu.onnx")
    (step,) = call_json("bench", "relu.onnx", "--seconds", 0.01)["steps"]
    assert (step["step"], step["share"], step["record"]) == ("relu 8x8", 1.0, None)
    (task,) = call_json("tasks", "relu.onnx")["tasks"]
    assert step["task"] == task["task"]
    assert step["candidate"]
    assert step["flops_per_second"] == pytest.approx(64 / step["seconds"])
    assert step["bytes_per_second"] == pytest.approx(2 * 64 * 4 / step["seconds"])
    assert 0 < step["roofline"] < 2
    shown = call("bench", "relu.onnx", "--seconds", 0.01).stdout
    assert "relu 8x8" in shown
    for column in ("task", "time", "share", "GFLOP/s", "GB/s", "roofline", "of record"):
        assert column in shown
    assert call_json("bench", "relu.onnx", "--seconds", 0.01, "--no-profile")["steps"] is None


def test_names_with_brackets_are_printed_as_they_are(database: dict[str, Any], call: Call, folder: Path) -> None:
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [8]) for name in ("x", "y[/b]")]
    node = onnx.helper.make_node("Relu", ["x"], ["y[/b]"])
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", ends[:1], ends[1:])), folder / "brackets.onnx")
    assert "y[/b]" in call("run", "brackets.onnx").stdout
    (folder / "t.db").rename(folder / "[red].db")
    told = call(*TUNE[:-1], "[red].db", "--no-progress").stdout
    assert f"best {duration(database['best_latency'])}" in told
    assert "kept in [red].db" in told
