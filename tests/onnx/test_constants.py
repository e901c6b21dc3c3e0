"""Constants, wherever in a model they are: all are checked alike before their data are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from tests.onnx.support import run

X = np.array([1, 2], np.float32)
STANDARD = helper.make_opsetid("", 21)

_value = helper.make_tensor_value_info


def _model(
    nodes: Sequence[onnx.NodeProto],
    tensors: Sequence[TensorProto] = (),
    sparse: Sequence[onnx.SparseTensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    inputs, outputs = [_value("x", TensorProto.FLOAT, [2])], [_value("y", TensorProto.FLOAT, [2])]
    graph = helper.make_graph(nodes, "constants", inputs, outputs, tensors)
    graph.sparse_initializer.extend(sparse)
    imports = [STANDARD, helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=functions)


def _initializer(tensor: TensorProto) -> onnx.ModelProto:
    return _model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor])


def _attribute(tensor: TensorProto) -> onnx.ModelProto:
    return _model([helper.make_node("Constant", [], ["w"], value=tensor), helper.make_node("Add", ["x", "w"], ["y"])])


def _branch(tensor: TensorProto) -> onnx.ModelProto:
    def graph(operator: str, inputs: Sequence[str], tensors: Sequence[TensorProto]) -> onnx.GraphProto:
        return helper.make_graph(
            [helper.make_node(operator, inputs, ["r"])], operator, [], [_value("r", TensorProto.FLOAT, [2])], tensors
        )

    node = helper.make_node("If", ["c"], ["y"], then_branch=graph("Add", "xw", [tensor]), else_branch=graph("Neg", "x", ()))
    return _model([node], [numpy_helper.from_array(np.asarray(True), "c")])


def _function(tensor: TensorProto) -> onnx.ModelProto:
    nodes = [helper.make_node("Constant", [], ["w"], value=tensor), helper.make_node("Add", ["a", "w"], ["b"])]
    function = helper.make_function("own", "plus", ["a"], ["b"], nodes, [STANDARD])
    return _model([helper.make_node("plus", ["x"], ["y"], domain="own")], functions=[function])


def _sparse(tensor: TensorProto) -> onnx.ModelProto:
    """Its values are ``tensor``."""
    indices = numpy_helper.from_array(np.array([0, 1]))
    return _model([helper.make_node("Add", ["x", "w"], ["y"])], sparse=[helper.make_sparse_tensor(tensor, indices, [2])])


PLACES: dict[str, Callable[[TensorProto], onnx.ModelProto]] = {
    "initializer": _initializer,
    "attribute": _attribute,
    "subgraph": _branch,
    "function": _function,
    "sparse": _sparse,
}

pytestmark = pytest.mark.parametrize("place", PLACES)


def _tensor(dims: Sequence[int] = (2,), data: bytes = X.tobytes(), kind: int = TensorProto.FLOAT) -> TensorProto:
    return TensorProto(name="w", data_type=kind, dims=dims, raw_data=data)


def test_constants_that_fit(place: str) -> None:
    np.testing.assert_array_equal(run(PLACES[place](_tensor()), {"x": X})["y"], 2 * X)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (_tensor(data=bytes(7)), r"'w' do not fit its shape and type: \(2,\) of FLOAT needs 8 bytes, and there are 7"),
        (_tensor(data=bytes(9)), "needs 8 bytes, and there are 9"),
        (_tensor(data=b""), "needs 8 bytes, and there are 0"),
        (_tensor([1 << 40, 1 << 40]), "do not fit"),
        (_tensor([-2]), "no extent may be negative"),
        (_tensor(kind=77), "of type 77, which is none of ONNX's"),
        (_tensor(kind=TensorProto.UNDEFINED), "is none of ONNX's"),
        (
            TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], float_data=[1]),
            "needs 2 entries in float_data, and there are 1",
        ),
    ],
)
def test_constants_that_do_not_fit(place: str, tensor: TensorProto, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_model(PLACES[place](tensor))


def _external(location: str, **more: str) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


@pytest.mark.parametrize("more", [{}, {"offset": "4"}, {"offset": "4", "length": "8"}])
def test_external_data_are_read(place: str, more: dict[str, str], tmp_path: Path) -> None:
    """What is behind them in their file may be others'."""
    data = np.array([1, 2, 2, 7], np.float32)
    (tmp_path / "w.bin").write_bytes(data.tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(PLACES[place](_external("w.bin", **more)).SerializeToString())
    begin = int(more.get("offset", 0)) // 4
    np.testing.assert_array_equal(run(path, {"x": X})["y"], X + data[begin : begin + 2])


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (_external("../w.bin"), "outside of its own folder"),
        (_external("link.bin"), "outside of its own folder"),
        (_external("/etc/hostname"), "outside of its own folder"),
        (_external("w\0.bin"), "no file has a name with a NUL in it"),
        (_external("none.bin"), "no such file beside it"),
        (_external(""), "no such file beside it"),
        (_external("a" * 5000), "looks for the data of 'w' in"),
        (_external("w.bin", offset="-1"), "its offset is '-1'"),
        (_external("w.bin", offset="9" * 30), "its offset is '999"),
        (_external("w.bin", length="1e9"), "its length is '1e9'"),
        (_external("w.bin", length="12"), "takes 8 bytes, and has 12"),
        (_external("w.bin", offset="4"), "needs 8 bytes from 4 on; it has only 8"),
        (_external("w.bin", offset=str(1 << 62)), "it has only 8"),
    ],
)
def test_external_data_that_are_not_there_or_not_the_models_own(
    place: str, tensor: TensorProto, message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(8))
    (folder / "w.bin").write_bytes(bytes(8))
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    path = folder / "model.onnx"
    path.write_bytes(PLACES[place](tensor).SerializeToString())
    with pytest.raises(ModelError, match=message) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert "\0" not in str(caught.value)
