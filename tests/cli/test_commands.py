"""Each command, called as a user calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from ansorlite.cli.main import COMMANDS

Call = Callable[..., Result]
CallJson = Callable[..., dict[str, Any]]

TUNE = ("tune", "kernels.py:matmul", "--args", 16, 16, 16, "--trials", 4, "--database", "t.db")


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


def test_tune_tells_what_it_found(call_json: CallJson) -> None:
    found = call_json(*TUNE)
    assert found["trials"] == 4
    assert 0 < found["best_latency"] < 1
    assert found["seconds"] == pytest.approx(sum(found["phases"].values()))
    (task,) = found["tasks"]
    assert task["trials"] == 4
    assert task["naive_latency"] > 0
    assert set(task["candidate"]) == {"sketch", "row"}


def test_tune_again_has_nothing_left_to_do(call_json: CallJson) -> None:
    first, second = call_json(*TUNE), call_json(*TUNE)
    assert (first["restored"], second["restored"], second["trials"]) == (0, 4, 4)
    assert second["best_latency"] == first["best_latency"]


def test_tune_prints_a_table_for_people(call: Call) -> None:
    result = call(*TUNE, "--no-progress")
    assert result.exit_code == 0
    assert "c 16x16 -> 16x16" in result.stdout
    assert "as fast as the loops as written; 4 trials" in result.stdout
    assert "kept in t.db" in result.stdout


def test_tune_shows_progress_on_stderr_when_asked(call: Call) -> None:
    result = call(*TUNE, "--progress", "--json")
    json.loads(result.stdout)
    assert "4/4 trials" in result.stderr


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


def test_run_uses_the_database(call: Call, call_json: CallJson) -> None:
    call_json(*TUNE)
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


def test_records_counts_and_lists(call: Call, call_json: CallJson) -> None:
    call_json(*TUNE)
    told = call_json("records", "t.db")
    assert sum(told["outcomes"].values()) == len(told["records"]) == 4
    first = told["records"][0]
    assert first["candidate"] == {"sketch": "naive", "row": []}
    assert first["outcome"] == "ok"
    assert first["latency"] > 0
    assert "16x16" in first["task"]
    assert "4 measurements" in call("records", "t.db").stdout


def test_records_travel_as_json_lines(call: Call, call_json: CallJson) -> None:
    call_json(*TUNE)
    assert call("records", "t.db", "--export", "t.jsonl").exit_code == 0
    assert call("records", "t.db", "--export", "-").stdout == Path("t.jsonl").read_text()
    assert call_json("records", "copy.db", "--import", "t.jsonl")["imported"] == 4
    assert call_json("records", "copy.db", "--import", "t.jsonl")["imported"] == 0
    original, copy = call_json("records", "t.db"), call_json("records", "copy.db")
    assert original["outcomes"] == copy["outcomes"]
    assert [r["latency"] for r in original["records"]] == [r["latency"] for r in copy["records"]]


def test_what_another_machine_measured_is_taken_up(call: Call, call_json: CallJson) -> None:
    first = call_json(*TUNE)
    call("records", "t.db", "--export", "t.jsonl")
    call("records", "other.db", "--import", "t.jsonl")
    again = call_json(*TUNE[:-1], "other.db")
    assert (again["restored"], again["best_latency"]) == (4, first["best_latency"])
