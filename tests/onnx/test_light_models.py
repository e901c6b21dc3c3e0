"""The nine models that come with ONNX: what they are cut into, and what they compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorlite.frontends.onnx import load_model
from ansorlite.frontends.onnx.importer import import_model
from ansorlite.frontends.onnx.load import load
from ansorlite.graph.executable import compile_model
from ansorlite.graph.model import Model
from ansorlite.target import host
from ansorlite.topi.blocked import blocked_conv
from ansorlite.topi.conv import conv
from ansorlite.topi.shape import transpose
from ansorlite.tuner.workload import parts_of, tasks_of
from benchmarks.models.light import spread_weights
from tests.onnx.support import LIGHT_MODELS, Meaning, light_input, light_model, light_output

#: Vectors of 16 floats: how many channels a block has decides what is blocked.
TARGET = replace(host(), vector_bytes=64)

#: model → kernels that run, distinct tasks.
SIZES = {
    "light_bvlc_alexnet": (15, 15),
    "light_densenet121": (187, 133),
    "light_inception_v1": (75, 65),
    "light_inception_v2": (79, 50),
    "light_resnet50": (57, 32),
    "light_shufflenet": (75, 31),
    "light_squeezenet": (32, 24),
    "light_vgg19": (26, 19),
    "light_zfnet512": (15, 14),
}


def test_there_are_nine():
    assert sorted(SIZES) == LIGHT_MODELS


@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_every_model_is_cut_into_tasks(name):
    model = load_model(light_model(name), target=TARGET)
    kernels, tasks = SIZES[name]
    assert (len(model.groups), len(model.tasks)) == (kernels, tasks)
    assert sum(weight for _, weight in model.tasks) == kernels
    assert len({task.key for task, _ in model.tasks}) == tasks
    assert [value.shape for value in model.inputs.values()] == [(1, 3, 224, 224)]
    assert [value.shape for value in model.outputs.values()] == [light_output(name).shape]
    # Nothing is left of batch normalisation where a convolution comes before it.
    assert not any(group.name.startswith("conv+multiply") for group in model.groups)


@pytest.mark.parametrize("name", ["light_densenet121", "light_shufflenet"])
def test_steps_use_tasks_in_the_order_in_which_they_are_listed(name):
    """``ansorlite bench`` numbers tasks by their first use among the steps, ``ansorlite tasks`` as it lists them."""
    model = load_model(light_model(name))
    facts = compile_model(model, Meaning).facts
    assert list(dict.fromkeys(step.task for step in facts if step.task)) == [task.key for task, _ in tasks_of(parts_of(model))]


def test_a_model_shows_itself_in_a_line():
    shown = repr(load_model(light_model("light_squeezenet"), target=TARGET))
    assert shown.startswith("Model(data_0 float32[1x3x224x224] -> softmaxout_1 float32[1x1000x1x1]; 32 kernels of 24 tasks, ")


def test_equal_residual_blocks_are_one_task():
    weights = [weight for _, weight in load_model(light_model("light_resnet50")).tasks]
    assert max(weights) == 5


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_a_residual_network_keeps_its_channels_in_blocks_from_the_first_convolution_on(lanes):
    model = load_model(light_model("light_resnet50"), target=replace(TARGET, vector_bytes=4 * lanes))
    assert isinstance(model, Model)
    (given,) = model.inputs
    convolutions = [node for node in model.graph.nodes if node.operator is blocked_conv]
    assert len(convolutions) == 53
    assert convolutions[0].inputs[0] == given
    assert {model.graph.values[node.output].shape[-1] for node in convolutions} == {lanes}
    assert not any(node.operator in (conv, transpose) for node in model.graph.nodes)


def test_channels_may_stay_as_they_are():
    graph = import_model(load(light_model("light_squeezenet")), {}).graph
    assert graph is not None
    operators = [node.operator for node in Model.of(graph, TARGET, blocked=False).graph.nodes]
    assert operators.count(conv) == 26
    assert blocked_conv not in operators


@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet"])
def test_fusion_and_folding_keep_what_a_model_with_random_weights_computes(name):
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    proto = spread_weights(light_model(name), rng)
    model = load_model(proto)
    ((given, value),) = model.inputs.items()
    x = rng.standard_normal(value.shape).astype(np.float32)
    expected = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {given: x})
    results = compile_model(model, Meaning)(x).values()
    assert len(expected) == 2  # what the softmax is taken of, too
    for array, result in zip(expected, results, strict=True):
        assert np.ptp(array) > 0.0001
        np.testing.assert_allclose(result, array, rtol=1e-3, atol=1e-4 * np.sqrt(np.mean(array**2)))


def test_the_recorded_output_by_the_numpy_meaning():
    model = load_model(light_model("light_squeezenet"))
    executable = compile_model(model, Meaning)
    (value,) = model.inputs.values()
    (result,) = executable(light_input(value.shape)).values()
    np.testing.assert_allclose(result, light_output("light_squeezenet"), rtol=1e-3, atol=1e-7)
    assert executable.plan.peak < executable.plan.total / 2
