"""What is no tensor expression runs in Python, between native segments, and is reported as such."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from ansorlite.cli import main
from ansorlite.errors import ArgumentError, ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.frontends.onnx.backend import Backend
from ansorlite.graph.hybrid import HybridModel, compile_any
from ansorlite.graph.model import Model
from ansorlite.runtime.peaks import MemoryLevel, Peaks
from tests.onnx.support import Meaning, make_model, run

PEAKS = Peaks(2, 100e9, (MemoryLevel("memory", 1 << 30, 10e9, 8e9),))

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
MATRICES = X.reshape(3, 2, 2)


_info = helper.make_tensor_value_info


def _hybrid(model: onnx.ModelProto) -> HybridModel:
    loaded = load_model(model)
    assert isinstance(loaded, HybridModel)
    return loaded


def _determinants() -> onnx.ModelProto:
    """A native node, determinants of its matrices, and native nodes on these and beside them."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Det", ["a"], ["d"], name="volume"),
        helper.make_node("Exp", ["d"], ["y"]),
        helper.make_node("Neg", ["a"], ["z"]),
    ]
    return make_model(nodes, {"x": MATRICES}, ["y", "z"])


def test_native_segments_before_and_after_a_fallback_of_known_shape():
    model = _hybrid(_determinants())
    assert [step.operator for step in model.fallbacks] == ["Det"]
    assert model.fallbacks[0].title == "node 'volume' (Det)"
    assert [len(segment.groups) for segment in model.segments] == [2, 1]
    assert len(model.tasks) == 3
    expected = ReferenceEvaluator(_determinants()).run(None, {"x": MATRICES})
    for name, array in zip(("y", "z"), expected, strict=True):
        np.testing.assert_allclose(run(_determinants(), {"x": MATRICES})[name], array, rtol=1e-6)


def test_what_depends_on_a_result_of_unknown_shape_runs_in_python_too():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("NonZero", ["a"], ["where"]),
        helper.make_node("Neg", ["where"], ["y"]),
    ]
    model = make_model(nodes, {"x": X}, ["y"])
    assert [step.operator for step in _hybrid(model).fallbacks] == ["NonZero", "Neg"]
    np.testing.assert_array_equal(run(model, {"x": X})["y"], -np.array(np.nonzero(X > 0)))


def test_a_reason_is_given():
    model = make_model([helper.make_node("Reshape", ["x", "shape"], ["y"])], {"x": X, "shape": np.array([6, 2])}, ["y"])
    (step,) = _hybrid(model).fallbacks
    assert step.reason == "input 1 ('shape') is known only while the model runs"


def test_shapes_that_are_inputs_are_specialised_by_value():
    model = make_model([helper.make_node("Reshape", ["x", "shape"], ["y"])], {"x": X, "shape": np.array([6, 2])}, ["y"])
    ready = Backend.prepare(model)
    for shape in ((6, 2), (2, 6), (12, 1)):
        np.testing.assert_array_equal(ready.run([X, np.array(shape)])[0], X.reshape(shape))
        assert isinstance(ready.model, Model)


def test_strings_and_sequences_pass_through():
    graph = helper.make_graph(
        [helper.make_node("StringConcat", ["s", "s"], ["y"]), helper.make_node("SplitToSequence", ["x"], ["parts"])],
        "strings",
        [_info("s", TensorProto.STRING, [2]), _info("x", TensorProto.FLOAT, [3, 4])],
        [
            _info("y", TensorProto.STRING, [2]),
            helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    results = run(model, {"s": np.array(["a", "b"], object), "x": X})
    assert results["y"].tolist() == ["aa", "bb"]
    np.testing.assert_array_equal(results["parts"], X[:, None])


def test_random_numbers_are_drawn_anew_in_each_run():
    nodes = [helper.make_node("RandomNormal", [], ["noise"], shape=[3, 4]), helper.make_node("Add", ["x", "noise"], ["y"])]
    ready = compile_any(load_model(make_model(nodes, {"x": X}, ["y"])), Meaning)
    assert not np.array_equal(ready(X)["y"], ready(X)["y"])


def test_training_mode_of_dropout():
    node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "kept"], seed=1)
    constants = {"ratio": np.asarray(np.float32(0.5)), "training": np.asarray(np.True_)}
    results = run(make_model([node], {"x": X}, ["y", "kept"], constants), {"x": X})
    np.testing.assert_allclose(results["y"], np.where(results["kept"], X * 2, 0), rtol=1e-6)


def test_a_body_of_other_operators_is_expanded():
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0])
    model = make_model([node], {"x": X}, ["y"])
    assert isinstance(load_model(model), Model)
    np.testing.assert_allclose(run(model, {"x": X})["y"], (X - X.mean(0)) / X.std(0), rtol=1e-4, atol=1e-5)


def test_tensors_without_elements():
    graph = helper.make_graph(
        [helper.make_node("Concat", ["x", "none"], ["y"], axis=0), helper.make_node("Relu", ["none"], ["z"])],
        "empty",
        [_info("x", TensorProto.FLOAT, [3, 4]), _info("none", TensorProto.FLOAT, [0, 4])],
        [_info("y", TensorProto.FLOAT, [3, 4]), _info("z", TensorProto.FLOAT, [0, 4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    results = run(model, {"x": X, "none": np.empty((0, 4), np.float32)})
    np.testing.assert_array_equal(results["y"], X)
    assert results["z"].shape == (0, 4)


def test_the_mean_of_nothing_is_no_number():
    x, scale = np.zeros((6, 4, 0), np.float32), np.zeros((4, 0), np.float32)
    node = helper.make_node("LayerNormalization", ["x", "scale"], ["y", "mean", "deviation"], axis=-2)
    found = run(make_model([node], {"x": x}, ["y", "mean", "deviation"], {"scale": scale}), {"x": x})
    assert found["y"].shape == (6, 4, 0)
    for name in ("mean", "deviation"):
        np.testing.assert_array_equal(found[name], np.full((6, 1, 1), np.nan, np.float32))


def test_what_turns_out_to_have_no_elements_while_the_model_runs():
    """Of the shape of NonZero's result nothing is known before; the reference's LRN fails without channels."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Cast", ["where"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["a"], ["b"]),
        helper.make_node("Unsqueeze", ["b", "axes"], ["c"]),
        helper.make_node("LRN", ["c"], ["y"], size=3),
    ]
    x = np.zeros((3, 4), np.float32)
    result = run(make_model(nodes, {"x": x}, ["y"], {"axes": np.array([0, 3])}), {"x": x})["y"]
    assert (result.shape, result.dtype) == ((1, 0, 2, 1), np.float32)


def test_results_that_run_in_python_are_of_the_dtype_that_is_due():
    """A power of float16 is computed in float32 where its exponent is of that."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Cast", ["where"], ["a"], to=TensorProto.FLOAT16),
        helper.make_node("Pow", ["a", "e"], ["y"]),
    ]
    for x in (X, np.zeros_like(X)):
        result = run(make_model(nodes, {"x": x}, ["y"], {"e": np.float32([2])}), {"x": x})["y"]
        assert result.dtype == np.float16
        np.testing.assert_array_equal(result, np.array(np.nonzero(x)) ** 2)


@pytest.mark.parametrize(
    ("operator", "parameters", "attributes"),
    [("Celu", 0, {}), ("GroupNormalization", 2, {"num_groups": 2}), ("MeanVarianceNormalization", 0, {"axes": [1]})],
)
def test_nothing_stays_so_where_inference_knows_no_shapes(operator, parameters, attributes):
    x, scale = np.zeros((0, 4, 2), np.float16), np.ones(4, np.float16)
    names = [f"s{n}" for n in range(parameters)]
    node = helper.make_node(operator, ["x", *names], ["y"], **attributes)
    model = make_model([node], {"x": x}, ["y"], dict.fromkeys(names, scale))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    result = run(model, {"x": x})["y"]
    assert (result.shape, result.dtype) == (x.shape, x.dtype)


@pytest.mark.parametrize("given", [(X, X), (), (X[:2],), (X.astype(np.float64),)])
def test_wrong_inputs(given):
    with pytest.raises(ArgumentError):
        compile_any(load_model(_determinants()), Meaning)(*given)


def test_what_the_reference_refuses_at_run_time_is_one_clear_sentence():
    nodes = [helper.make_node("NonZero", ["x"], ["w"]), helper.make_node("Reshape", ["w", "shape"], ["y"], name="fold")]
    model = make_model(nodes, {"x": X}, ["y"], {"shape": np.array([7, 7])})
    with pytest.raises(ModelError, match=r"node 'fold' \(Reshape\) cannot run"):
        run(model, {"x": X})


def test_a_model_with_a_fallback_is_not_exported(tmp_path):
    executable = compile_any(_hybrid(_determinants()), Meaning)
    with pytest.raises(ArgumentError, match=r"exported to .*m\.so, as it runs in Python in part: node 'volume' \(Det\)$"):
        executable.export(tmp_path / "m.so")


def test_kernels_and_host_steps_have_a_profile_in_running_order():
    executable = compile_any(_hybrid(_determinants()), Meaning)
    profile = executable.profile({"x": MATRICES}, runs=2, peaks=PEAKS)
    assert len(profile.steps) == executable.steps
    assert all(step.seconds > 0 for step in profile.steps)
    names = [step.facts.name.partition(" ")[0] for step in profile.steps]
    assert names == ["relu", "negative", "Python:", "exp"]
    host = profile.steps[2].facts
    # It reads 12 numbers, and gives 3.
    assert (host.name, host.task, host.bytes) == ("Python: node 'volume' (Det)", "", 12 * 4 + 3 * 4)
    with pytest.raises(ArgumentError, match="runs is 0"):
        executable.profile({"x": MATRICES}, runs=0, peaks=PEAKS)


def test_the_command_names_what_runs_in_python(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(_determinants(), path)
    found = CliRunner().invoke(main, ["tasks", str(path), "--json"])
    assert found.exit_code == 0
    (fallback,) = json.loads(found.stdout)["fallbacks"]
    assert fallback == {"operator": "Det", "node": "node 'volume' (Det)", "reason": "it is not written as a tensor expression"}
    assert "node 'volume' (Det): it is not written" in CliRunner().invoke(main, ["tasks", str(path)]).stdout


def test_loops_and_branches_with_a_known_course_are_native():
    """Row sums by Scan, in both directions, inside of a branch that is always taken."""
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "row"], ["next"]), helper.make_node("Identity", ["next"], ["out"])],
        "body",
        [_info("sum", TensorProto.FLOAT, [4]), _info("row", TensorProto.FLOAT, [4])],
        [_info("next", TensorProto.FLOAT, [4]), _info("out", TensorProto.FLOAT, [4])],
    )
    scan = helper.make_node(
        "Scan", ["zero", "x"], ["last", "sums"], body=body, num_scan_inputs=1, scan_input_directions=[1], scan_output_axes=[1]
    )
    taken = helper.make_graph([scan], "then", [], [_info("sums", TensorProto.FLOAT, [4, 3])])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["no"])], "else", [], [_info("no", TensorProto.FLOAT, [3, 4])])
    branch = helper.make_node("If", ["yes"], ["y"], then_branch=taken, else_branch=other)
    model = make_model([branch], {"x": X}, ["y"], {"yes": np.asarray(True), "zero": np.zeros(4, np.float32)})
    assert isinstance(load_model(model), Model)
    np.testing.assert_allclose(run(model, {"x": X})["y"], X[::-1].cumsum(axis=0).T, rtol=1e-5)


def test_a_loop_that_runs_too_often_is_left_to_the_reference():
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Mul", ["v", "half"], ["next"])],
        "body",
        [_info("i", TensorProto.INT64, []), _info("go", TensorProto.BOOL, []), _info("v", TensorProto.FLOAT, [3, 4])],
        [_info("on", TensorProto.BOOL, []), _info("next", TensorProto.FLOAT, [3, 4])],
    )
    loop = helper.make_node("Loop", ["often", "yes", "x"], ["y"], body=body)
    constants = {"often": np.array(5000), "yes": np.asarray(True), "half": np.float32(0.999)}
    model = make_model([loop], {"x": X}, ["y"], {name: np.asarray(value) for name, value in constants.items()})
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [3, 4]))
    (step,) = _hybrid(model).fallbacks
    assert step.operator == "Loop"
    np.testing.assert_allclose(run(model, {"x": X})["y"], X * np.float32(0.999) ** 5000, rtol=1e-2)
