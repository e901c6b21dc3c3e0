"""Sparse constants become dense ones."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from tests.onnx.support import run

X = np.zeros((2, 3), np.float32)


def _sparse(indices: object, shape: tuple[int, ...] = (2, 3), values: int = 2) -> onnx.SparseTensorProto:
    tensor = numpy_helper.from_array(np.arange(5, 5 + values, dtype=np.float32), "w")
    return helper.make_sparse_tensor(tensor, numpy_helper.from_array(np.asarray(indices)), shape)


def _model(sparse: onnx.SparseTensorProto, *, attribute: bool) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    if attribute:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=sparse))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "sparse", [value("x", TensorProto.FLOAT, [2, 3])], [value("y", TensorProto.FLOAT, [2, 3])])
    if not attribute:
        graph.sparse_initializer.append(sparse)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("attribute", [False, True])
@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_both_forms_of_indices(indices: list[object], attribute: bool) -> None:
    result = run(_model(_sparse(indices), attribute=attribute), {"x": X})["y"]
    np.testing.assert_array_equal(result, [[0, 5, 0], [0, 0, 6]])


@pytest.mark.parametrize(
    "sparse",
    [
        _sparse([1, 6]),
        _sparse([-1, 2]),
        _sparse([[0, 1], [1, 3]]),
        _sparse([0, 1, 2]),
        _sparse([[0], [1]]),
        _sparse([0.0, 1.0]),
        _sparse([0, 1], (1 << 20, 1 << 20)),
        _sparse([0, 1], (2, -3)),
    ],
)
@pytest.mark.parametrize("attribute", [False, True])
def test_entries_that_are_no_places_in_it(sparse: onnx.SparseTensorProto, attribute: bool) -> None:
    with pytest.raises(ModelError):
        load_model(_model(sparse, attribute=attribute))


def test_a_small_file_does_not_make_a_large_tensor() -> None:
    with pytest.raises(ModelError, match=r"takes 4096 GiB with its zeros, and the most is 1 GiB"):
        load_model(_model(_sparse([0, 1], (1 << 20, 1 << 20)), attribute=False))
