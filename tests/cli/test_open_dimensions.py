"""Open dimensions of models on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import Result
from onnx import TensorProto, helper

from ansorlite.cli.options import Given
from ansorlite.cli.program import fixed
from ansorlite.cli.source import load_open
from ansorlite.graph.hybrid import HybridModel
from ansorlite.graph.model import Model

Call = Callable[..., Result]
CallJson = Callable[..., dict[str, Any]]


@pytest.fixture
def model(folder: Path) -> str:
    """``y = exp(x)`` for any number of rows."""
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["y"])],
        "exp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "exp.onnx")
    return "exp.onnx"


def test_tasks_and_tuning_for_named_sizes(model: str, call_json: CallJson) -> None:
    assert len(call_json("tasks", model, "--dim", "rows=8")["tasks"]) == 1
    assert len(call_json("tasks", model, "--dim", "rows=8,64")["tasks"]) == 2
    told = call_json("tune", model, "--dim", "rows=8,64", "--trials", 4, "--database", "t.db", "--no-progress")
    assert len(told["tasks"]) == 2
    assert told["trials"] == 4


def test_a_run_takes_sizes_from_files(model: str, folder: Path, call_json: CallJson) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    np.save(folder / "x.npy", x)
    (output,) = call_json("run", model, "--input", "x=x.npy", "--output-dir", "out")["outputs"]
    np.testing.assert_allclose(np.load(output["file"]), np.exp(x), rtol=1e-6)
    assert call_json("run", model, "--dim", "rows=5")["outputs"][0]["shape"] == [5, 4]


@pytest.mark.parametrize("command", ["tasks", "tune", "run", "bench"])
def test_what_is_still_open_is_told_in_one_sentence(model: str, call: Call, command: str) -> None:
    result = call(command, model)
    assert result.exit_code == 2
    assert "dimension 'rows' is open" in result.stderr
    assert "--dim rows=" in result.stderr


@pytest.mark.parametrize(
    ("dim", "message"),
    [("rows", "as in --dim batch=8"), ("rows=a", "give integers"), ("columns=4", "no open dimension 'columns'; it has: rows")],
)
def test_a_size_that_makes_no_sense(model: str, call: Call, dim: str, message: str) -> None:
    result = call("tasks", model, "--dim", dim)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_run_takes_values_that_decide_shapes_from_files(folder: Path, call_json: CallJson) -> None:
    graph = helper.make_graph(
        [
            helper.make_node("Exp", ["x"], ["e"]),
            helper.make_node("Reshape", ["e", "shape"], ["r"]),
            helper.make_node("Exp", ["r"], ["y"]),
        ],
        "reshape",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 4]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "reshape.onnx")
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    np.save(folder / "x.npy", x)
    for shape in ((8, 3), (2, -1)):
        np.save(folder / "shape.npy", np.array(shape))
        files = ("--input", "x=x.npy", "--input", "shape=shape.npy", "--output-dir", "out")
        (output,) = call_json("run", "reshape.onnx", *files)["outputs"]
        np.testing.assert_allclose(np.load(output["file"]), np.exp(np.exp(x.reshape(shape))), rtol=1e-5)
    assert call_json("tasks", "reshape.onnx")["tasks"]
    # Without the values, what depends on them runs in Python.
    whole = load_open("reshape.onnx", Given(), "llvm")
    assert isinstance(fixed(whole, {"x": "x.npy"}), HybridModel)
    assert isinstance(fixed(whole, {"shape": "shape.npy"}), Model)


def test_the_tasks_of_a_model_that_runs_in_python_are_none(folder: Path, call: Call, call_json: CallJson) -> None:
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"])],
        "places",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [1, None])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "places.onnx")
    told = call_json("tasks", "places.onnx")
    assert told["tasks"] == []
    assert [step["operator"] for step in told["fallbacks"]] == ["NonZero"]
    assert "there is no task to tune" in call("tune", "places.onnx", "--database", "t.db").stderr


def test_a_model_without_elements_is_left_to_python(folder: Path, call: Call) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [0, 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "nothing", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "nothing.onnx")
    assert "input 'x' is no tensor of numbers, or one without elements" in call("run", "nothing.onnx").stderr
