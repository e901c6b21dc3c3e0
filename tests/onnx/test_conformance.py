"""ONNX's own backend tests, through the real backend class.

The node tests run as users run models: by the default programs, compiled. The small models that come with ONNX run the numpy
meaning of the tensor expressions that they become. Which tests have nodes that run in Python is recorded in ``fallbacks.txt``:
a change of that is meant, or wrong.
"""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test import BackendTest

from ansorlite.frontends.onnx.backend import Backend, Representation
from ansorlite.graph.executable import Bindable
from ansorlite.task import Task
from benchmarks.conformance.cases import cases, is_plain
from benchmarks.conformance.exclusions import EXCLUDED
from benchmarks.conformance.run import Meaning, hosts_of

FALLBACKS = frozenset((Path(__file__).parent / "fallbacks.txt").read_text().split())


class _Watched(Representation):
    """Says after each run whether what ran in Python is what was recorded."""

    def __init__(self, proto: onnx.ModelProto, kernel_for: Callable[[Task], Bindable], name: str) -> None:
        super().__init__(proto, kernel_for)
        self._name = name

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            results = super().run(inputs, **kwargs)
        reasons = [f"{step.title}: {step.reason}" for step in hosts_of(self.model)]
        assert bool(reasons) == (self._name in FALLBACKS), f"not as recorded in fallbacks.txt: {reasons or 'all native'}"
        return results


class _Backend(Backend):
    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Representation:
        del device, kwargs
        return _Watched(model, cls.kernel_for(), model.graph.name)


#: Operators of the small models that nothing here knows.
_GRADIENTS = ("test_gradient_of_add", "test_gradient_of_add_and_mul")


class _Plain(Backend):
    @classmethod
    def kernel_for(cls) -> Callable[[Task], Bindable]:
        return Meaning


def _tests(backend: type[Backend], *names: str) -> list[type[unittest.TestCase]]:
    """Classes of tests, without those for other devices and those that are not expected to pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classes = BackendTest(backend, __name__).test_cases
    found = [classes[name] for name in names]
    for tests in found:
        for name in [name for name in vars(tests) if name.startswith("test_")]:
            if not name.endswith("_cpu") or name.removesuffix("_cpu") in (*EXCLUDED, *_GRADIENTS):
                delattr(tests, name)
    return found


(OnnxBackendNodeTest,) = _tests(_Backend, "OnnxBackendNodeModelTest")
# The models of the "real" tests are in test_light_models_compiled.py.
OnnxBackendSimpleTest, OnnxBackendConvertedTest, OnnxBackendOperatorTest = _tests(
    _Plain, "OnnxBackendSimpleModelTest", "OnnxBackendPyTorchConvertedModelTest", "OnnxBackendPyTorchOperatorModelTest"
)


def test_ninety_nine_of_a_hundred_pass_and_eighty_five_are_native() -> None:
    names = {case.name for case in cases()}
    plain = {case.name for case in cases() if is_plain(case)}
    assert names >= FALLBACKS | EXCLUDED.keys()
    assert len(EXCLUDED) <= 0.01 * len(names)
    assert len(plain & (FALLBACKS | EXCLUDED.keys())) <= 0.15 * len(plain)
