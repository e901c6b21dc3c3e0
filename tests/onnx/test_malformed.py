"""Whatever is wrong with a model or with how it is used becomes one clear sentence."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from ansorlite.errors import ArgumentError, ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.graph.executable import compile_model
from tests.onnx.support import Meaning, light_model, make_model

X = np.zeros((2, 3), np.float32)


def _relu(**options) -> onnx.ModelProto:
    return make_model([helper.make_node("Relu", ["x"], ["y"], name="act")], {"x": X}, ["y"], **options)


def _open(*dims) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "open",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ModelError, match=r"cannot read .*none\.onnx: No such file"):
        load_model(tmp_path / "none.onnx")


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(ModelError, match="cannot read"):
        load_model(tmp_path)


@pytest.mark.parametrize("data", [b"", b"hello, this is no model", bytes(64), b"\xff" * 100])
def test_bytes_that_are_no_model(data):
    with pytest.raises(ModelError, match="not an ONNX model"):
        load_model(data)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_off(share, tmp_path):
    data = light_model("light_squeezenet").read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ModelError):
        load_model(path)


def test_single_flipped_bytes_end_in_a_model_or_a_model_error():
    data = light_model("light_zfnet512").read_bytes()
    rng = np.random.default_rng(0)
    messages = []
    for _ in range(40):
        broken = bytearray(data)
        broken[rng.integers(len(data))] = rng.integers(256)
        try:
            load_model(bytes(broken))
        except ModelError as error:
            messages.append(str(error))
    assert len(messages) > 10
    assert not any("\n" in message for message in messages)


def test_an_unknown_operator_is_named_with_its_node():
    model = make_model([helper.make_node("Scan", ["x"], ["y"], name="find", num_scan_inputs=1)], {"x": X}, ["y"])
    model.graph.node[0].op_type = "Upsample"
    with pytest.raises(ModelError, match=r"Upsample"):
        load_model(model)


def test_an_operator_of_another_domain_is_named_with_it():
    model = _relu()
    model.graph.node[0].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(ModelError, match=r"com\.example\.Relu"):
        load_model(model)


def test_an_opset_that_is_not_known_yet_is_not_guessed_at():
    model = _relu()
    model.opset_import[0].version = 99
    with pytest.raises(ModelError, match=r"is of opset 99, and the onnx that is installed knows those up to \d+; upgrade onnx"):
        load_model(model)


def test_open_dimensions_are_named_with_the_cure():
    with pytest.raises(
        ModelError, match=r"dimension 0 \('batch'\) of input 'x' is open; give it with shapes=\{\"x\": \(\.\.\.\)\}"
    ):
        load_model(_open("batch", 3))
    assert load_model(_open("batch", 3), {"x": (4, 3)}).outputs["y"].shape == (4, 3)


@pytest.mark.parametrize("shape", [(4, 5), (4,), (4, 3, 1)])
def test_a_shape_that_the_model_does_not_allow(shape):
    with pytest.raises(ModelError, match=r"which the model declares as \(batch, 3\)"):
        load_model(_open("batch", 3), {"x": shape})


def test_a_shape_for_an_input_that_is_not_there():
    with pytest.raises(ModelError, match="'data', which is not an input of the model; its inputs are: x"):
        load_model(_relu(), {"data": (2, 3)})


def test_a_negative_dimension():
    with pytest.raises(ModelError, match="no extent may be negative"):
        load_model(_open("batch", 3), {"x": (-1, 3)})


def test_shapes_that_do_not_fit_name_the_node():
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="first")
    x, w = np.zeros((1, 3, 8, 8), np.float32), np.zeros((4, 3, 3, 3), np.float32)
    model = make_model([node], {"x": x}, ["y"], {"w": w})
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(w[:, :2].copy(), "w"))
    with pytest.raises(ModelError, match=r"node 'first' \(Conv\): conv: 3 channels"):
        load_model(model)


def test_an_attribute_of_the_wrong_type():
    model = make_model([helper.make_node("Transpose", ["x"], ["y"], name="turn", perm=[1, 0])], {"x": X}, ["y"])
    model.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("perm", "back to front"))
    with pytest.raises(ModelError, match="perm"):
        load_model(model)


def test_a_node_that_reads_what_nothing_computes():
    model = _relu()
    model.graph.node[0].input[0] = "z"
    with pytest.raises(ModelError, match="breaks the rules of ONNX"):
        load_model(model)


def test_types_that_do_not_go_together():
    model = make_model([helper.make_node("Mul", ["x", "w"], ["y"])], {"x": X}, ["y"], {"w": np.ones((2, 3), np.float32)})
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((2, 3)), "w"))
    with pytest.raises(ModelError, match=r"\(Mul\): inputs 'x' and 'w' must be of one dtype, and are float32 and float64"):
        load_model(model)


def test_names_that_are_no_text():
    data = _relu().SerializeToString().replace(b"act", b"\xff\xfe\xfd")
    with pytest.raises(ModelError, match="which is no UTF-8"):
        load_model(data)


@pytest.mark.parametrize(
    ("nodes", "constants", "message"),
    [
        ([helper.make_node("Expand", ["x", "n"], ["y"])], {"n": np.array([1 << 43, 2, 3])}, "TiB, and the most is 64 TiB"),
        ([helper.make_node("Resize", ["x", "", "n"], ["y"])], {"n": np.array([1, 1e12], np.float32)}, "at most 16777216"),
        ([helper.make_node("Resize", ["x", "", "n"], ["y"])], {"n": np.array([1, np.inf], np.float32)}, "2 finite numbers"),
        ([helper.make_node("CumSum", ["x", "n"], ["y"])], {"n": np.array([0, 1])}, "must be a single number"),
    ],
)
def test_sizes_and_numbers_that_cannot_be(nodes, constants, message):
    model = make_model(nodes, {"x": X}, ["y"])
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, ["m", "n"]))
    with pytest.raises(ModelError, match=message):
        load_model(model)


def test_a_loop_that_never_ends_is_not_run_at_import():
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Mul", ["v", "v"], ["w"])],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, [2])],
        [value("on", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, [2])],
    )
    nodes = [helper.make_node("Loop", ["n", "", "v"], ["r"], body=body), helper.make_node("Add", ["r", "x"], ["y"])]
    model = make_model(nodes, {"x": X[:1, :2]}, ["y"], {"n": np.asarray(1 << 62, np.int64), "v": np.ones(2, np.float32)})
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    assert "Loop" in [step.operator for step in load_model(model).fallbacks]


def test_a_message_is_one_line_of_bounded_length():
    model = _relu()
    model.graph.node[0].input[0] = "long " * 5000
    with pytest.raises(ModelError) as caught:
        load_model(model)
    assert len(str(caught.value)) <= ModelError.LONGEST
    assert "\n" not in str(caught.value)


def _with_external_weight(location: str) -> onnx.ModelProto:
    model = make_model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], {"w": np.ones((2, 3), np.float32)})
    (tensor,) = model.graph.initializer
    set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    return model


def test_external_data_beside_the_model_are_read(tmp_path):
    (tmp_path / "weights.bin").write_bytes(np.full((2, 3), 5, np.float32).tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(_with_external_weight("weights.bin").SerializeToString())
    result = compile_model(load_model(path), Meaning)(X)
    np.testing.assert_array_equal(result["y"], X + 5)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/hostname", "a/../../weights.bin"])
def test_external_data_outside_of_the_folder_are_refused(location, tmp_path):
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(24))
    path = folder / "model.onnx"
    path.write_bytes(_with_external_weight(location).SerializeToString())
    with pytest.raises(ModelError, match="outside of its own folder"):
        load_model(path)


def test_external_data_that_are_missing_or_too_short(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(_with_external_weight("weights.bin").SerializeToString())
    with pytest.raises(ModelError, match="no such file beside it"):
        load_model(path)
    (tmp_path / "weights.bin").write_bytes(bytes(7))
    with pytest.raises(ModelError):
        load_model(path)
    with pytest.raises(ModelError, match="load it by its path"):
        load_model(path.read_bytes())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"z": X},), "input 'z' is unknown"),
        (({},), "input 'x' is missing"),
        ((X, X), "2 arrays given"),
        ((X.astype(np.float64),), r"input 'x' is float64; convert it with \.astype\('float32'\)"),
        ((X[:1],), r"input 'x' has shape \(1, 3\)"),
        (([1.0, 2.0],), "input 'x' is a list"),
    ],
)
def test_wrong_inputs_to_an_executable(arguments, message):
    executable = compile_model(load_model(_relu()), Meaning)
    with pytest.raises(ArgumentError, match=message):
        executable(*arguments)
