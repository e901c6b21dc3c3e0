"""Dimensions that exporters leave open without a name that means anything: each is its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_any, load_model
from ansorlite.graph.hybrid import compile_any
from ansorlite.graph.open_executable import OpenExecutable
from ansorlite.graph.open_model import OpenModel
from tests.onnx.support import Meaning, run


def _value(name: str, dims: Sequence[int | str], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def _model(dims: Sequence[int | str], *, looped: bool = False) -> onnx.ModelProto:
    """Two inputs of these dimensions; the same are stated of what is computed of them, inside of subgraphs too."""
    nodes = [helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Concat", ["r", "b"], ["y"], axis=0)]
    if looped:
        # How often is known only while the model runs, so the loop runs in Python.
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Neg", ["v"], ["w"])],
            "body",
            [_value("i", [], TensorProto.INT64), _value("go", [], TensorProto.BOOL), _value("v", dims)],
            [_value("on", [], TensorProto.BOOL), _value("w", dims)],
        )
        nodes[0] = helper.make_node("Loop", ["n", "yes", "a"], ["r"], body=body)
        nodes.insert(0, helper.make_node("Cast", ["count"], ["n"], to=TensorProto.INT64))
        nodes.insert(0, helper.make_node("Cast", ["count"], ["yes"], to=TensorProto.BOOL))
    inputs = [_value("a", dims), _value("b", dims), *([_value("count", [])] if looped else [])]
    graph = helper.make_graph(nodes, "nameless", inputs, [_value("y", dims)], value_info=[_value("r", dims)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("dim", [-1, "?", "-1", "None", ""])
def test_they_are_open_and_each_its_own(dim: int | str) -> None:
    model = load_any(_model([dim, dim]))
    assert isinstance(model, OpenModel)
    assert model.dims == ("a.0", "a.1", "b.0", "b.1")
    ready = OpenExecutable(model, lambda built, shared: compile_any(built, Meaning, shared))
    for rows in ((1, 2), (5, 3)):
        a, b = np.ones((rows[0], 4), np.float32), np.ones((rows[1], 4), np.float32)
        assert ready(a=a, b=b)["y"].shape == (sum(rows), 4)


@pytest.mark.parametrize("dim", [-1, "?"])
def test_shapes_and_sizes_for_them(dim: int | str) -> None:
    proto = _model([dim, 4])
    assert load_model(proto, {"a": (2, 4), "b": (3, 4)}).outputs["y"].shape == (5, 4)
    named = load_any(proto, {"a": ("rows", 4), "b": (3, 4)})
    assert isinstance(named, OpenModel)
    assert named.dims == ("rows",)
    assert load_any(proto, dims={"a.0": 2, "b.0": 3}).outputs["y"].shape == (5, 4)
    with pytest.raises(ModelError, match=r"dimension 0 \('a\.0'\) of input 'a' is open; give it with shapes="):
        load_model(proto)
    with pytest.raises(ModelError, match=r"which the model declares as \(a\.0, 4\)"):
        load_model(proto, {"a": (2, 5)})


def test_what_runs_in_python_states_them_too() -> None:
    a = np.ones((2, 4), np.float32)
    given = {"a": a, "b": a, "count": np.asarray(np.float32(3))}
    results = run(_model([-1, 4], looped=True), given, shapes={"a": (2, 4), "b": (2, 4)})
    np.testing.assert_array_equal(results["y"], np.concatenate([-a, a]))
