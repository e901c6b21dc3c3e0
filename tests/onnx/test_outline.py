"""What the checker gets to see of a model: all but the data of large weights that are as many as they should be."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.frontends.onnx.outline import outline

WEIGHT = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


def model(weight: onnx.TensorProto) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 64))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 64))],
        [weight, numpy_helper.from_array(np.ones(3, np.float32), "small")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="a test")


def test_only_the_data_of_large_weights_go() -> None:
    whole = model(numpy_helper.from_array(WEIGHT, "w"))
    before = whole.SerializeToString()
    result = outline(whole)
    assert whole.SerializeToString() == before
    assert len(result.SerializeToString()) < 500
    large, small = result.graph.initializer
    assert (large.name, large.data_type, list(large.dims), large.raw_data) == ("w", TensorProto.FLOAT, [0], b"")
    assert small == whole.graph.initializer[1]
    large.CopyFrom(whole.graph.initializer[0])
    assert result == whole


@pytest.mark.parametrize("nbytes", [-4, 4])
@pytest.mark.parametrize("dims", [(64, 64), (-1, 64)])
def test_weights_that_do_not_fit_their_shape_are_refused(nbytes: int, dims: tuple[int, int]) -> None:
    data = WEIGHT.tobytes()
    weight = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=data[:nbytes] if nbytes < 0 else data + bytes(4)
    )
    assert outline(model(weight)).graph.initializer[0] == weight
    with pytest.raises(ModelError, match=r"no extent may be negative|do not fit"):
        load_model(model(weight))
