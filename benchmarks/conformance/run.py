"""Running ONNX's tests through the backend."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import Runner

from ansorlite.best import Programs
from ansorlite.frontends.onnx.backend import Backend, Representation
from ansorlite.graph.executable import Bindable
from ansorlite.graph.hybrid import AnyModel, HostStep, HybridModel
from ansorlite.programs.kernels import compile_candidate
from ansorlite.sketch.candidate import NAIVE
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from benchmarks.conformance.cases import is_plain, operator_of
from benchmarks.conformance.result import Result, Way


@dataclass(frozen=True)
class Meaning:
    """A task's numpy meaning in the place of its kernel."""

    task: Task

    def bind(self, *arrays: np.ndarray[Any, Any]) -> Callable[[], None]:
        return lambda: np.copyto(arrays[-1], evaluate(self.task.dag, arrays[:-1])[0])


KERNELS: Final[dict[str, Callable[[], Callable[[Task], Bindable]]]] = {
    "meaning": lambda: Meaning,
    "naive": lambda: lambda task: compile_candidate(task, NAIVE),
    "default": lambda: Programs(None).kernel,
}


def hosts_of(model: AnyModel | None) -> tuple[HostStep, ...]:
    return model.fallbacks if isinstance(model, HybridModel) else ()


def run(case: TestCase, ready: Representation) -> None:
    """Run all data of a test and compare as ONNX does.

    Raises:
        AssertionError: the results differ.
    """
    for inputs, expected in case.data_sets or ():
        found = ready.run([_array(datum) for datum in inputs])
        Runner.assert_similar_outputs([_array(datum) for datum in expected], found, case.rtol, case.atol)


def _array(datum: Any) -> Any:
    return numpy_helper.to_array(datum) if isinstance(datum, onnx.TensorProto) else datum


def result_of(case: TestCase, kernel_for: Callable[[Task], Bindable]) -> Result:
    """Run one test."""

    class Chosen(Backend):
        @classmethod
        def kernel_for(cls) -> Callable[[Task], Bindable]:
            return kernel_for

    operator, plain = operator_of(case), is_plain(case)
    try:
        ready = Chosen.prepare(case.model)
        run(case, ready)
    except Exception as error:
        # Whatever goes wrong in one test is a line in the report, and no reason to stop.
        return Result(
            case.name, operator, plain, Way.FAILING, error=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        )
    assert ready.model is not None
    steps = hosts_of(ready.model)
    hosts = tuple(sorted({(step.operator, step.reason) for step in steps}))
    return Result(case.name, operator, plain, Way.FALLBACK if hosts else Way.NATIVE, not ready.model.tasks, hosts)


def run_all(chosen: Sequence[TestCase], kernel_for: Callable[[Task], Bindable]) -> list[Result]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [result_of(case, kernel_for) for case in chosen]
