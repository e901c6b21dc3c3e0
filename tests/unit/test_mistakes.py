"""What a caller may get wrong is told in a sentence with its cause and cure, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.target import host

A = te.placeholder((4,), name="A")
W = te.placeholder((4,), name="W", constant=True)
TASK = al.Task([A, W, te.compute((4,), lambda i: A[i] * W[i], name="B")])


@pytest.fixture(scope="module")
def kernel() -> al.Kernel:
    return al.compile(TASK)


def wrong(function: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises(al.AnsorliteError) as caught:
        function(*arguments, **named)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"trials": "5"}, "trials is '5'; it must be an integer, 1 or more"),
        ({"trials": 1.5}, "trials is 1.5"),
        ({"trials": 0}, "trials is 0"),
        ({"seed": -1}, "seed is -1; it must be an integer, 0 or more"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"time_limit": "x"}, "time_limit is 'x'; it must be a number greater than 0"),
        ({"time_limit": float("nan")}, "time_limit is nan"),
        ({"stop_below": "x"}, "stop_below is 'x'; it must be a share"),
        ({"goals": 5}, "goals is 5; give an al.Goal"),
        ({"goals": [5]}, "goals is [5]; give an al.Goal"),
        ({"space": 5}, "5 is no space: give a function that schedules"),
        ({"database": 5}, "a database is given by the path of its file, not by 5"),
        ({"strategy": 5}, "unknown strategy 5"),
        ({"strategy": []}, "unknown strategy []"),
        ({"scheduler": "by_hand"}, "unknown scheduler 'by_hand'; the schedulers are: gradient, round_robin,"),
        ({"strategy": "nowhere.py:S"}, "there is no file nowhere.py"),
        ({"strategy": lambda problem: problem}, "<lambda> takes (problem), but it is called with (problem, model, rng)"),
        ({"strategy": lambda *_: None}, "the strategy None has no propose; it needs propose, observe, rounds"),
        ({"scheduler": lambda *_: 5}, "the scheduler 5 has no next; it needs next, update, expected_gain"),
        ({"cost_model": "boosting"}, "unknown cost model 'boosting'; the cost models are: own, bounded, gbdt, ranked,"),
        ({"cost_model": 5}, "unknown cost model 5"),
        ({"cost_model": "math:pi"}, "the cost model math:pi is 3.14"),
        ({"cost_model": "no.such:model"}, "no.such cannot be imported (No module named 'no')"),
        ({"cost_model": lambda *_: 5}, "the cost model's maker gave 5 for 1 tasks; it must give a list, one model a task"),
        ({"cost_model": lambda *_: []}, "the cost model's maker gave [] for 1 tasks"),
        ({"cost_model": lambda *_: [5]}, "the cost model 5 has no fit; it needs fit, predict"),
        ({"measurer": "remote"}, "unknown measurer 'remote'; the measurers are: local, ray; or"),
        ({"measurer": lambda *_: 5}, "the measurer 5 is no context manager; give it __enter__ and __exit__"),
        ({"measurer": lambda *_: nullcontext(5)}, "the measurer 5 has no measure; it needs measure"),
        ({"scheduler": "round_robin", "stop_below": 0.1}, "'round_robin' forecasts nothing, so stop_below=0.1"),
        ({"objective": ["latency"]}, "objective is ['latency']; it must be the name of one"),
    ],
)
def test_of_tune(named: dict[str, Any], told: str) -> None:
    assert told in wrong(al.tune, TASK, **{"trials": 1, **named})


@pytest.mark.parametrize("named", [{"database": "nowhere/t.db"}, {"objective": "bounds"}, {"space": "nowhere.py:space"}])
def test_of_tune_before_sketches_are_derived(named: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansorlite.api.tune.task_state", lambda *_: pytest.fail("a model's take seconds"))
    assert wrong(al.tune, TASK, **named)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((None,), "a NoneType is neither a task nor a model"),
        (([TASK],), "a list is neither a task nor a model, which are compiled one by one"),
        ((TASK, 5), "a database is given by the path of its file, not by 5"),
    ],
)
def test_of_compile(arguments: tuple[Any, ...], told: str) -> None:
    assert told in wrong(al.compile, *arguments)


def test_of_options_of_compile() -> None:
    assert "keep is '2'; it must be an integer" in wrong(al.compile, TASK, keep="2")
    assert "keep is 2, but this has no open dimensions" in wrong(al.compile, TASK, keep=2)
    assert "5 is no space" in wrong(al.compile, TASK, space=5)


def test_of_models() -> None:
    assert "given as a path, bytes or an onnx.ModelProto, not as int" in wrong(al.from_onnx, 5)
    assert "the shape of 'x' is 5; it must be integers" in wrong(al.from_onnx, b"", shapes={"x": 5})
    assert "shapes is [1]; it must be a dictionary" in wrong(al.from_onnx, b"", shapes=[1])
    assert "dims is 5; it must be a dictionary" in wrong(al.from_onnx, b"", dims=5)
    assert "by the path of its library, not by 5" in wrong(al.load, 5)
    assert "a model is made of a graph, not of 5" in wrong(al.Model.of, 5)


def test_of_expressions_and_goals() -> None:
    assert "computed by a function of its axes" in wrong(te.compute, (4,), 5)
    assert "the weight of a model is 'x'" in wrong(al.Goal, weight="x")
    assert "a name is 5; it must be a string" in wrong(te.placeholder, (4,), name=5)
    assert "a name is 5; it must be a string" in wrong(te.compute, (4,), lambda i: i, name=5)
    assert "a name is 5; it must be a string" in wrong(te.reduce_axis, 4, name=5)
    assert "got 0.0; te.maximum takes two values" in wrong(te.compute, (4,), lambda i: te.max(A[i], 0.0))  # type: ignore[arg-type]
    assert wrong(te.compute, (4,), lambda i: te.sum(A[i], i)).endswith("got Axis(i, 4)")
    assert "constant of W is 'no'; it must be True or False" in wrong(te.placeholder, (4,), name="W", constant="no")


def test_of_targets() -> None:
    assert "unknown target 5; the targets are: llvm" in wrong(al.Task, TASK.dag, 5)
    for threads in (0, -1, 1.5, "2"):
        assert f"threads is {threads!r}; it must be an integer, 1 or more" in wrong(host, threads)


def test_of_timing(kernel: al.Kernel) -> None:
    ones = np.ones(4, np.float32)
    told = wrong(kernel.benchmark, ones, ones, settings=5)
    assert "settings is 5; it must be ansorlite.runtime.timing.TimingSettings(...)" in told


def test_of_constants(kernel: al.Kernel) -> None:
    ones = np.ones(4, np.float32)
    assert "kernel.prepare(W=...); got none" in wrong(kernel.prepare)
    assert "kernel.prepare(W=...); got A" in wrong(kernel.prepare, A=ones)
    assert "W has shape (3,), but the kernel was compiled for (4,); reshape it" in wrong(kernel.prepare, W=ones[:3])
    assert "W is float64, not float32; convert it with .astype" in wrong(kernel.prepare, W=ones.astype(float))
    assert "this kernel has no constant inputs" in wrong(kernel.prepare(W=ones).prepare, W=ones)
    assert "B is a int, not a numpy array" in wrong(kernel, ones, ones, out=5)
