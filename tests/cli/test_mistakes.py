"""A user's mistake is one clear sentence and exit code 2; a bug keeps its traceback."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result

Call = Callable[..., Result]

SQUEEZENET = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("tune nowhere.onnx", "there is no file nowhere.onnx"),
        ("tune kernels.py", "needs the name of a function: kernels.py:matmul"),
        ("tune nowhere.py:f", "there is no file nowhere.py"),
        ("tune kernels.py:nothing", "kernels.py has no function 'nothing'; it has: matmul, scale, wrong, buggy"),
        ("tune kernels.py:matmul", "kernels.py:matmul takes (m, n, k), but it was given nothing; say --args and an int for each"),
        ("tune kernels.py:matmul --args 1 2", "takes (m, n, k), but it was given 1 2;"),
        ("tune kernels.py:matmul --args 1,2,3", "1,2,3 follows; give ints, as in --args 512 512 512"),
        ("tune kernels.py:matmul --args", "nothing follows; give ints, as in --args 512 512 512"),
        ("tune kernels.py:scale --space nowhere.py:space", "there is no file nowhere.py"),
        ("tune kernels.py:scale --space broken.py:space", "broken.py:2 is no Python: expected ':'; correct it"),
        ("tune kernels.py:scale --space kernels.py:space", "kernels.py has no 'space'; it has: matmul, scale, wrong"),
        ("tune kernels.py:scale --strategy tabu", "'tabu' is none of evolutionary, random, "),
        ("tune kernels.py:scale --scheduler nowhere.py:S", "there is no file nowhere.py"),
        ("tune kernels.py:scale --cost-model kernels.py:Model", "kernels.py has no 'Model'; it has: matmul"),
        ("tune kernels.py:scale --cost-model kernels.py:scale", "kernels.py:scale takes (), but it is called with (tasks, rng)"),
        ("tune kernels.py:scale --measurer kernels.py:__name__", "which cannot be called; name a function of target, settings"),
        ("tune kernels.py:scale --measurer raising.py:M", "raising.py:3 raises ZeroDivisionError when it is imported"),
        ("tune kernels.py:scale --strategy leaving.py:S", "leaving.py:1 raises SystemExit when it is imported (3); correct it"),
        ("tasks .", ". is a folder; give the ONNX file in it"),
        ("tasks kernels.py:scale --precision bfloat16", "--precision is for models; the tensors of kernels.py:scale"),
        ("tune kernels.py:wrong --args 3", "kernels.py:21: a has 1 dimensions (3,) but is read with 2 indices"),
        ("tune kernels.py:scale --bound other.onnx=5ms", "'other.onnx' is none of the sources; they are: kernels.py:scale"),
        ("tune kernels.py:scale --bound kernels.py:scale=5", "is '5'; write a number and a unit (s, ms, us, ns), as in 5ms"),
        ("tune kernels.py:scale --bound kernels.py:scale=5ms", "choose objective 'bounds'"),
        ("tune kernels.py:scale --objective bounds", "needs the bound of a model"),
        ("tune kernels.py:scale --weight kernels.py:scale=0", "the weight of a model is 0.0; it must be a number greater than 0"),
        ("tune kernels.py:scale --stop-below much", "'much' is no share; write 0.1% or 0.001"),
        ("tune kernels.py:scale --target toaster", "unknown target 'toaster'"),
        ("tune kernels.py:scale --database nowhere/t.db", "the folder"),
        ("run kernels.py:scale --input b=x.npy", "there is no input 'b'; the inputs are: a"),
        ("run kernels.py:scale --input a=x.npy", "there is no file x.npy for input a"),
        ("run kernels.py:scale --input a=kernels.py", "kernels.py for input a is not a .npy file"),
        ("run kernels.py:scale --input a=short.npy", "short.npy holds float32 of shape (3,), but input a is"),
        ("run kernels.py:scale --input a", "'a' should be a name, '=' and a value, as in --input data=x.npy"),
        ("run kernels.py:scale --database kernels.py", "this is not a tuning database"),
        ("bench kernels.py:scale --against onnxruntime", "onnxruntime runs ONNX models"),
        ("export kernels.py:scale -o scale.so", "kernels.py:scale is a function in a Python file; only models are exported"),
        ("tasks broken.py:f", "broken.py:2 is no Python: expected ':'; correct it"),
        ("tasks lonely.py:f", "lonely.py cannot be imported (No module named 'no_such_module'); install or correct"),
        ("records nowhere.db", "there is no tuning database at nowhere.db"),
        ("records kernels.py", "this is not a tuning database"),
        ("records new.db --import kernels.py", "line 2: this is not JSON"),
        ("run kernels.py:scale --output-dir /dev/null/here", "/dev/null/here cannot be written (Not a directory)"),
        ("run kernels.py:scale --seed -1", "-1 is not in the range x>=0"),
        ("tasks kernels.py:scale --args 3", "takes (), but it was given 3;"),
    ],
)  # fmt: skip
def test_it_is_told_in_one_sentence(call: Call, folder: Path, words: str, sentence: str) -> None:
    np.save(folder / "short.npy", np.zeros(3, np.float32))
    (folder / "broken.py").write_text("import os\ndef f()\n    return 1\n")
    (folder / "lonely.py").write_text("import no_such_module\n")
    (folder / "raising.py").write_text("def f():\n    pass\nhalf = 1 / 0\n")
    (folder / "leaving.py").write_text("raise SystemExit(3)\n")
    result = call(*words.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    told = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(told) == 1
    assert sentence in told[0]
    assert "Traceback" not in result.output


def test_a_model_takes_shapes_and_no_ints(call: Call) -> None:
    assert "--args is for a function" in call("tasks", SQUEEZENET, "--args", 3).stderr
    assert "with commas between, as in --shape data=1,3,224,224" in call("tasks", SQUEEZENET, "--shape", "data=a,b").stderr
    assert "with commas between, as in --dim batch=8,32" in call("tasks", SQUEEZENET, "--dim", "batch=a").stderr


def test_a_malformed_model(call: Call, folder: Path) -> None:
    (folder / "bad.onnx").write_bytes(b"this is not a protobuf")
    result = call("tasks", "bad.onnx")
    assert result.exit_code == 2
    assert "bad.onnx" in result.stderr


def test_a_comparison_with_what_is_not_installed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnxruntime" else find(name, *rest))
    monkeypatch.setattr("ansorlite.cli.bench.Runnable.make", lambda *_: None)
    monkeypatch.setattr("ansorlite.cli.bench.load_inputs", lambda *_: {})
    result = call("bench", SQUEEZENET, "--against", "onnxruntime")
    assert result.exit_code == 2
    assert "onnxruntime is not installed; install it with: pip install" in result.stderr


@pytest.mark.parametrize("path", ["nowhere/lines.jsonl", ".", "/dev/full"])
@pytest.mark.usefixtures("database")
def test_an_export_that_cannot_be_written(call: Call, path: str) -> None:
    result = call("records", "t.db", "--export", path)
    assert result.exit_code == 2
    assert f"{path} cannot be written (" in result.stderr


@pytest.mark.usefixtures("database")
def test_records_of_a_task_that_is_not_there(call: Call) -> None:
    result = call("records", "t.db", "--task", "nonsense")
    assert result.exit_code == 2
    assert "no task in t.db has the key 'nonsense'; the nearest is 'a0 float32" in result.stderr


def test_export_and_json_do_not_share_stdout(call: Call) -> None:
    assert call("records", "t.db", "--export", "-", "--json").exit_code == 2


def test_ctrl_c_is_no_mistake_anywhere(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ansorlite.cli.bench.load_inputs", interrupted)
    result = call("bench", "kernels.py:scale")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.endswith("stopped by Ctrl-C\n")


def test_a_bug_keeps_its_traceback(call: Call) -> None:
    result = call("tune", "kernels.py:buggy")
    assert isinstance(result.exception, ZeroDivisionError)
    assert result.exit_code == 1
