"""The nine models that come with ONNX, compiled, give the outputs recorded beside them.

Default programs where a model's work is large, loops as written where its tasks are many: both kinds of kernel are run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorlite.best import Programs
from ansorlite.frontends.onnx import load_model
from ansorlite.graph.executable import compile_model
from ansorlite.programs.kernels import compile_candidate
from ansorlite.runtime.kernel import Kernel
from ansorlite.sketch.candidate import NAIVE
from ansorlite.task import Task
from benchmarks.models.light import spread_weights
from tests.onnx.support import LIGHT_MODELS, Meaning, light_input, light_model, light_output


def _naive(task: Task) -> Kernel:
    return compile_candidate(task, NAIVE)


def _default(task: Task) -> Kernel:
    return Programs(None).kernel(task)


KERNELS: dict[str, Callable[[Task], Kernel]] = {
    "light_bvlc_alexnet": _default,
    "light_densenet121": _naive,
    "light_inception_v1": _naive,
    "light_inception_v2": _naive,
    "light_resnet50": _default,
    "light_shufflenet": _naive,
    "light_squeezenet": _default,
    "light_vgg19": _default,
    "light_zfnet512": _default,
}


@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_the_recorded_output(name):
    executable = compile_model(load_model(light_model(name)), KERNELS[name])
    (value,) = executable.inputs.values()
    (result,) = executable(light_input(value.shape)).values()
    np.testing.assert_allclose(result, light_output(name), rtol=1e-4)


def test_random_weights_in_compiled_kernels_and_in_their_meaning():
    rng = np.random.default_rng(0)
    model = load_model(spread_weights(light_model("light_squeezenet"), rng))
    ((name, value),) = model.inputs.items()
    x = rng.standard_normal(value.shape).astype(np.float32)
    expected = compile_model(model, Meaning)({name: x})
    for kernels in (_naive, _default):
        for output, result in compile_model(model, kernels)({name: x}).items():
            scale = np.sqrt(np.mean(expected[output] ** 2))
            np.testing.assert_allclose(result, expected[output], rtol=1e-3, atol=1e-4 * scale)
