"""The nine models that come with ONNX: what they are cut into, and what they compute."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ansorlite.frontends.onnx import load_model
from ansorlite.graph.executable import compile_model
from tests.onnx.support import LIGHT_MODELS, Meaning, light_input, light_model, light_output

#: model → kernels that run, distinct tasks.
SIZES = {
    "light_bvlc_alexnet": (14, 14),
    "light_densenet121": (188, 134),
    "light_inception_v1": (75, 64),
    "light_inception_v2": (84, 50),
    "light_resnet50": (57, 32),
    "light_shufflenet": (75, 31),
    "light_squeezenet": (31, 23),
    "light_vgg19": (25, 18),
    "light_zfnet512": (14, 13),
}


def test_there_are_nine():
    assert sorted(SIZES) == LIGHT_MODELS


@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_every_model_is_cut_into_tasks(name):
    model = load_model(light_model(name))
    kernels, tasks = SIZES[name]
    assert (len(model.groups), len(model.tasks)) == (kernels, tasks)
    assert sum(weight for _, weight in model.tasks) == kernels
    assert len({task.key for task, _ in model.tasks}) == tasks
    assert [value.shape for value in model.inputs.values()] == [(1, 3, 224, 224)]
    assert [value.shape for value in model.outputs.values()] == [light_output(name).shape]
    # Nothing is left of batch normalisation where a convolution comes before it.
    assert not any(group.name.startswith("conv+multiply") for group in model.groups)


def test_equal_residual_blocks_are_one_task():
    weights = [weight for _, weight in load_model(light_model("light_resnet50")).tasks]
    assert max(weights) == 5


def _spread_weights(path, rng: np.random.Generator) -> onnx.ModelProto:
    """The model with random weights in the place of the constant ones, of a size that keeps activations in range."""
    model = onnx.load(path)
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    roles = {name: (node.op_type, position) for node in model.graph.node for position, name in enumerate(node.input)}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = [int(extent) for extent in known[node.input[0]]]
        role = roles.get(node.output[0], ("", 0))
        values = rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:]) / 2))
        if role[0] == "BatchNormalization" and role[1] in (1, 4):
            values = rng.uniform(0.5, 1.5, shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
        model.graph.input.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, shape))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet"])
def test_fusion_and_folding_keep_what_a_model_with_random_weights_computes(name):
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    proto = _spread_weights(light_model(name), rng)
    model = load_model(proto)
    ((given, value),) = model.inputs.items()
    x = rng.standard_normal(value.shape).astype(np.float32)
    (expected,) = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {given: x})
    (result,) = compile_model(model, Meaning)(x).values()
    assert np.ptp(expected) > 0.0001
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-6)


def test_the_recorded_output_by_the_numpy_meaning():
    model = load_model(light_model("light_squeezenet"))
    executable = compile_model(model, Meaning)
    (value,) = model.inputs.values()
    (result,) = executable(light_input(value.shape)).values()
    np.testing.assert_allclose(result, light_output("light_squeezenet"), rtol=1e-3, atol=1e-7)
    assert executable.plan.peak < executable.plan.total / 2
