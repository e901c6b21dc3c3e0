"""Functions that a model defines: put in the place of their calls, unless they would become too much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from tests.onnx.support import run

X = np.array([1, 2], np.float32)
IMPORTS = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]


def _model(*functions: onnx.FunctionProto, shape: Sequence[int] | None = (2,)) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("f0", ["x"], ["y"], domain="own")],
        "calls",
        [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, functions=functions, opset_imports=IMPORTS, ir_version=10)


def _function(level: int, called: str, times: int, *, branch: bool = False) -> onnx.FunctionProto:
    """One that sums the results of so many calls of another, in a subgraph if so said."""
    domain = "own" if called.startswith("f") else ""
    names = [f"r{n}" for n in range(times)]
    nodes = [helper.make_node(called, ["a"], [name], domain=domain) for name in names]
    nodes.append(helper.make_node("Sum", names, ["d"]))
    if branch:
        graph = helper.make_graph(nodes, "branch", [], [onnx.ValueInfoProto(name="d")])
        condition = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.asarray(True)))
        nodes = [condition, helper.make_node("If", ["c"], ["d"], then_branch=graph, else_branch=graph)]
    return helper.make_function("own", f"f{level}", ["a"], ["d"], nodes, IMPORTS)


def _chain(depth: int, times: int, **options: bool) -> onnx.ModelProto:
    return _model(
        *(_function(n, f"f{n + 1}" if n + 1 < depth else "Abs", times, **options) for n in range(depth)),
    )


@pytest.mark.parametrize("branch", [False, True])
def test_functions_of_functions(branch: bool) -> None:
    np.testing.assert_array_equal(run(_chain(4, 2, branch=branch), {"x": -X})["y"], 16 * X)


@pytest.mark.parametrize(("depth", "times"), [(40, 2), (63, 2), (90, 9), (3, 60)])
@pytest.mark.parametrize("branch", [False, True])
def test_what_would_become_too_much_is_counted_and_not_made(depth: int, times: int, branch: bool) -> None:
    with pytest.raises(ModelError, match=r"stands for \d+ nodes of \d+ bytes; the most is 65536 nodes and 256 MiB"):
        load_model(_chain(depth, times, branch=branch))


def test_constants_of_functions_count() -> None:
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(np.zeros((512, 1024), np.float32)))
    leaf = helper.make_function("own", "f2", ["a"], ["d"], [constant, helper.make_node("Identity", ["a"], ["d"])], IMPORTS)
    with pytest.raises(ModelError, match="the most is 65536 nodes and 256 MiB"):
        load_model(_model(_function(0, "f1", 12), _function(1, "f2", 12), leaf))


def test_calls_in_a_row() -> None:
    np.testing.assert_array_equal(run(_chain(90, 1), {"x": -X})["y"], X)
    with pytest.raises(ModelError, match="3000 deep; the most is 100"):
        load_model(_chain(3000, 1))


@pytest.mark.parametrize("branch", [False, True])
def test_functions_that_call_themselves(branch: bool) -> None:
    with pytest.raises(ModelError, match=r"has a function that calls itself: 'f.' calls 'f.' calls 'f.'"):
        load_model(_model(_function(0, "f1", 1, branch=branch), _function(1, "f0", 1)))
    with pytest.raises(ModelError, match=r"has a function that calls itself: 'f.' calls 'f0'"):
        load_model(_model(_function(0, "f0", 1, branch=branch)))


def test_shapes_that_the_model_does_not_state_stay_open() -> None:
    """The checker is shown some, and the inliner too."""
    model = _model(_function(0, "Abs", 1), shape=None)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    for rank in (1, 3):
        x = np.full((2,) * rank, -1, np.float32)
        np.testing.assert_array_equal(run(model, {"x": x}, shapes={"x": x.shape})["y"], -x)
    with pytest.raises(ModelError, match="the shape of input 'x' is open"):
        load_model(model)
