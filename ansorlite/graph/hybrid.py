"""Models of which a part is no tensor expression: native segments, with steps between them that run in Python.

>>> before: a = conv(x, w); b = unique(a); c = relu(a); y = gather(c, b)
>>> after:  segment [a = conv(x, w); c = relu(a)]; host step b = unique(a); host step y = gather(c, b)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from ansorlite.errors import ArgumentError, ModelError
from ansorlite.export.description import StepFacts
from ansorlite.graph.describe import Value
from ansorlite.graph.executable import Bindable, Executable, compile_model
from ansorlite.graph.model import Model
from ansorlite.graph.profile import Profile, measure_profile
from ansorlite.graph.shared import SharedWeights
from ansorlite.runtime.arguments import by_name
from ansorlite.runtime.device_arrays import arrays_of, on_gpu
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.not_copied import NotCopied
from ansorlite.runtime.peaks import Peaks
from ansorlite.runtime.step_timing import check_runs
from ansorlite.target import Target
from ansorlite.task import Task

#: What passes between steps: an array, or whatever else a host step takes and gives (sequences of arrays, say).
Datum: TypeAlias = Any

#: How many steps a message names.
_NAMED: Final = 5


@dataclass(frozen=True, eq=False)
class HostStep:
    """One operator that runs in Python.

    Attributes:
        operator: what the model calls it.
        title: how to name it to a person.
        reason: why it is not native.
        inputs: the values that it reads.
        outputs: the values that it gives, each with shape and dtype if they are known beforehand.
        function: inputs in order, and the bodies, compiled → outputs in order.
        bodies: models that the function calls: what a loop repeats, or the branches of a condition.
        turns: how often it calls them, as far as that is known beforehand.
    """

    operator: str
    title: str
    reason: str
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, Value | None], ...]
    function: Callable[..., Sequence[Datum]]
    bodies: tuple[AnyModel, ...] = ()
    turns: int = 1

    def run(self, values: dict[str, Datum], bodies: Sequence[AnyExecutable] = ()) -> None:
        """Read from ``values``, and write to it.

        Args:
            bodies: those of this step, compiled.

        Raises:
            ModelError: the operator refuses its inputs, or gives other shapes or dtypes than announced.
        """
        try:
            results = self.function([values[name] for name in self.inputs], *bodies)
        except Exception as error:
            raise ModelError(f"{self.title} cannot run: {' '.join(str(error).split())}") from error
        for (name, expected), result in zip(self.outputs, results, strict=True):
            if expected is not None and (result.shape, result.dtype.name) != (expected.shape, expected.dtype):
                raise ModelError(
                    f"{self.title} gives {result.dtype} of shape {result.shape} where {expected.dtype} of {expected.shape} is due"
                )
            values[name] = result

    def facts(self, values: Mapping[str, Datum]) -> StepFacts:
        """What this step was, after it ran on ``values``."""
        touched = (*self.inputs, *(name for name, _ in self.outputs))
        nbytes = sum(datum.nbytes for datum in (values[name] for name in touched) if isinstance(datum, np.ndarray))
        return StepFacts(f"Python: {self.title}", "", "", 0, nbytes, None)


@dataclass(frozen=True, eq=False)
class HybridModel:
    """A model on one target, some of whose operators run in Python.

    Attributes:
        steps: in running order; a segment is a model whose inputs and outputs are names of values.
        inputs: input name → shape and dtype; ``None`` for what is no plain array of known shape.
        outputs: output name → the value that it is.
        constants: values that no step computes.
        target: the machine.
    """

    steps: tuple[Model | HostStep, ...]
    inputs: Mapping[str, Value | None]
    outputs: Mapping[str, str]
    constants: Mapping[str, Datum]
    target: Target

    @cached_property
    def tasks(self) -> tuple[tuple[Task, int], ...]:
        """The distinct tasks of all segments, in order of first use, each with the number of its uses."""
        counted: list[tuple[Task, int]] = []
        for step in self.steps:
            if isinstance(step, Model):
                counted.extend(step.tasks)
            else:
                counted.extend((task, weight * step.turns) for body in step.bodies for task, weight in body.tasks)
        return merged_tasks(counted)

    @property
    def segments(self) -> tuple[Model, ...]:
        """The native parts, but for those within bodies of host steps."""
        return tuple(step for step in self.steps if isinstance(step, Model))

    @property
    def fallbacks(self) -> tuple[HostStep, ...]:
        """What runs in Python."""
        return tuple(step for step in self.steps if isinstance(step, HostStep))


#: What a model file becomes.
AnyModel: TypeAlias = Model | HybridModel


def merged_tasks(tasks: Iterable[tuple[Task, int]]) -> tuple[tuple[Task, int], ...]:
    """Each task once, in order of first use, with the sum of its uses."""
    found: dict[str, tuple[Task, int]] = {}
    for task, uses in tasks:
        first, before = found.get(task.key, (task, 0))
        found[task.key] = (first, before + uses)
    return tuple(found.values())


class HybridExecutable(NotCopied):
    """A model that runs, segment by segment.

    Attributes:
        inputs: name → shape and dtype, where they are known.
    """

    elsewhere = "load and compile the model's file"

    def __init__(self, model: HybridModel, compiled: Callable[[AnyModel], AnyExecutable]) -> None:
        self.inputs = model.inputs
        self._model = model
        self._arrays = arrays_of(device_of(model.target))
        self._steps: list[Executable | _Hosted] = []
        for step in model.steps:
            if isinstance(step, Model):
                segment = compiled(step)
                assert isinstance(segment, Executable)
                self._steps.append(segment)
            else:
                self._steps.append(_Hosted(step, tuple(map(compiled, step.bodies))))

    @property
    def steps(self) -> int:
        """How many kernels, copies and host steps one run takes."""
        return sum(1 if isinstance(step, _Hosted) else step.steps for step in self._steps)

    def __call__(self, /, *arrays: Any, **named: Any) -> dict[str, Datum]:
        """Run the model: see :class:`ansorlite.graph.executable.Executable`. What host steps read of a GPU is waited for.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape or dtype.
            ModelError: a host step refuses its inputs.
        """
        values = self._given(arrays, named)
        there = any(on_gpu(values[name]) for name in self.inputs)
        for step in self._steps:
            if isinstance(step, _Hosted):
                step.step.run(self._brought(step.step, values), step.bodies)
            else:
                values.update(step({name: values[name] for name in step.inputs}))
        results = {public: values[name] for public, name in self._model.outputs.items()}
        if self._arrays is None or not there:
            return results
        return {name: self._arrays.view(name, datum) if _is_array(datum) else datum for name, datum in results.items()}

    def profile(self, inputs: Mapping[str, Datum], *, runs: int = 30, peaks: Peaks | None = None) -> Profile:
        """How long each kernel, copy and host step takes in place: see :meth:`ansorlite.graph.executable.Executable.profile`.

        Raises:
            ArgumentError: as for a call; or ``runs`` is less than 1.
            ModelError: a host step refuses its inputs.
        """
        check_runs(runs)
        facts, _ = self._timed(inputs)
        target = self._model.target
        return measure_profile(lambda: self._timed(inputs)[1], facts, peaks or device_of(target).peaks(target.threads), runs)

    def _timed(self, inputs: Mapping[str, Datum]) -> tuple[list[StepFacts], list[int]]:
        """Run the model once: what each step is, and its nanoseconds."""
        values = self._given((inputs,), {})
        facts: list[StepFacts] = []
        times: list[int] = []
        for step in self._steps:
            if isinstance(step, _Hosted):
                start = time.perf_counter_ns()
                step.step.run(self._brought(step.step, values), step.bodies)
                times.append(time.perf_counter_ns() - start)
                facts.append(step.step.facts(values))
            else:
                results, taken = step.timed({name: values[name] for name in step.inputs})
                values.update(results)
                times.extend(taken)
                facts.extend(step.facts)
        return facts, times

    def _given(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Datum]:
        """The values that are there before the first step."""
        given = dict(by_name(self.inputs, arrays, named))
        for name, value in self.inputs.items():
            if self._arrays is not None and on_gpu(given[name]):
                given[name] = self._arrays.view(f"input {name!r}", given[name])
            if value is not None:
                _check(name, given[name], value)
        return {**self._model.constants, **given}

    def _brought(self, step: HostStep, values: dict[str, Datum]) -> dict[str, Datum]:
        """``values``, in which what the step reads is on the host."""
        for name in step.inputs:
            if self._arrays is not None and on_gpu(values[name]):
                values[name] = self._arrays.on_host(name, values[name])
        return values

    def export(self, path: str | os.PathLike[str], **_: Any) -> NoReturn:
        """Not possible: a shared library has no Python.

        Raises:
            ArgumentError: always, with the steps that are to blame.
        """
        titles = [step.title for step in self._model.fallbacks]
        named = ", ".join(titles[:_NAMED]) + (f" and {len(titles) - _NAMED} more" if len(titles) > _NAMED else "")
        raise ArgumentError(f"this model cannot be exported to {os.fspath(path)}, as it runs in Python in part: {named}")


#: A model that runs.
AnyExecutable: TypeAlias = Executable | HybridExecutable


@dataclass(frozen=True, eq=False)
class _Hosted:
    """A host step, with its bodies compiled."""

    step: HostStep
    bodies: tuple[AnyExecutable, ...]


def compile_any(model: AnyModel, kernel_for: Callable[[Task], Bindable], shared: SharedWeights | None = None) -> AnyExecutable:
    """Make ``model`` callable. ``kernel_for`` is asked once for each distinct task; other models have weights in ``shared``."""
    if isinstance(model, Model):
        return compile_model(model, kernel_for, shared)
    kernels = {task.key: kernel_for(task) for task, _ in model.tasks}

    def compiled(part: AnyModel) -> AnyExecutable:
        if isinstance(part, Model):
            return compile_model(part, lambda task: kernels[task.key], shared)
        return HybridExecutable(part, compiled)

    return HybridExecutable(model, compiled)


def _is_array(datum: Datum) -> bool:
    return isinstance(datum, np.ndarray | np.generic) or on_gpu(datum)


def _check(name: str, array: Any, value: Value) -> None:
    shape, dtype = getattr(array, "shape", None), getattr(getattr(array, "dtype", None), "name", type(array).__name__)
    if (shape, dtype) != (value.shape, value.dtype):
        raise ArgumentError(f"input {name!r} is {dtype} of shape {shape}, but the model takes {value.dtype} of {value.shape}")
