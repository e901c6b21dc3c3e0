"""A whole model as one callable: its kernels, called in a row by native code, on the places of the memory plan."""

from __future__ import annotations

import ctypes
import math
import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np

from ansorlite import __version__
from ansorlite.codegen.entry import Address, Call, Step
from ansorlite.errors import ArgumentError
from ansorlite.export.description import Description, Parameter, StepFacts
from ansorlite.export.header import check_name, identifier
from ansorlite.export.write import NativeModel, write_library
from ansorlite.graph.describe import Value
from ansorlite.graph.fusion import Group
from ansorlite.graph.graph import Array
from ansorlite.graph.layout import Layout
from ansorlite.graph.memory import MemoryPlan, plan_memory
from ansorlite.graph.model import Model
from ansorlite.graph.profile import Profile, measure_profile
from ansorlite.runtime.arguments import Signature
from ansorlite.runtime.kernel import Kernel
from ansorlite.runtime.load import LoadedEntry
from ansorlite.runtime.model_call import ModelCall
from ansorlite.runtime.peaks import Peaks, measure_peaks
from ansorlite.task import Task
from ansorlite.te import dtypes


class Bindable(Protocol):
    """What an executable needs of a kernel. A :class:`ansorlite.runtime.kernel.Kernel` is called by native code."""

    def bind(self, *arrays: Array) -> Callable[[], None]:
        """A call on fixed arrays, inputs then outputs; it writes the outputs in place."""


def compile_model(model: Model, kernel_for: Callable[[Task], Bindable]) -> Executable:
    """Make ``model`` callable. ``kernel_for`` is asked once for each distinct task."""
    return Executable(model, [kernel_for(task) for task, _ in model.tasks])


@dataclass(frozen=True)
class _PythonStep:
    """A step that is no native kernel, with the places of its arrays."""

    kernel: Bindable
    arrays: tuple[tuple[Address, Value], ...]

    def __call__(self, bases: Sequence[int]) -> None:
        self.kernel.bind(*(_view(bases[address.base] + address.offset, value) for address, value in self.arrays))()

    def profile(self, bases: Sequence[int]) -> list[int]:
        """Run it; nanoseconds."""
        start = time.perf_counter_ns()
        self(bases)
        return [time.perf_counter_ns() - start]


@dataclass(frozen=True)
class _NativeSteps:
    """Steps that are one native call.

    Attributes:
        count: how many.
    """

    loaded: LoadedEntry
    count: int

    def __call__(self, bases: Sequence[int]) -> None:
        self.loaded.run(struct.pack(f"{len(bases)}P", *bases))

    def profile(self, bases: Sequence[int]) -> list[int]:
        """Run them; each one's nanoseconds."""
        nanoseconds = (ctypes.c_int64 * self.count)()
        self.loaded.profile(struct.pack(f"{len(bases)}P", *bases), nanoseconds)
        return list(nanoseconds)


_Segment: TypeAlias = _PythonStep | _NativeSteps


class Executable:
    """A model that runs. Any number of threads may call it at once; each call has temporaries of its own.

    Attributes:
        inputs, outputs: name → shape and dtype.
        plan: where values live; ``plan.peak`` and ``plan.total`` are bytes with and without reuse.
        steps: how many kernels and copies one run takes.
    """

    def __init__(self, model: Model, kernels: Sequence[Bindable]) -> None:
        """Give every value of ``model`` a place, and make one native function of what calls ``kernels`` on these.

        Args:
            kernels: one for each of ``model.tasks``.
        """
        graph = model.graph
        self.inputs: Mapping[str, Value] = model.inputs
        self.outputs: Mapping[str, Value] = model.outputs
        self.plan: Final[MemoryPlan] = plan_memory(graph, model.groups)
        self._model = model
        self._layout = Layout.of(graph, self.plan)
        self._weights = self._layout.packed_weights()
        self._kernels = tuple(kernels)
        workspace = max((kernel.compiled.workspace for kernel in kernels if isinstance(kernel, Kernel)), default=0)
        self._temporaries = self._layout.workspace.offset + workspace
        self._call = ModelCall(Signature(self.inputs, self.outputs), self._temporaries, self._weights.ctypes.data)
        self._steps = self._bound()
        self._segments = self._compiled()

    @property
    def steps(self) -> int:
        return len(self._steps)

    def __call__(self, /, *arrays: Any, **named: Any) -> dict[str, Array]:
        """Run the model.

        Args:
            arrays: one mapping of input name → array; or the inputs in the model's order. Arrays of numpy, or of any library
                that speaks DLPack, are read where they are if they are contiguous.
            named: inputs by name.

        Returns:
            output name → array, the caller's own.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape or dtype.
        """
        return self._call(self._run, arrays, named, None)

    def run(self, inputs: Mapping[str, Any], out: Mapping[str, Any]) -> dict[str, Array]:
        """Run the model, and write outputs where the caller wants them.

        Args:
            inputs: name → array.
            out: output name → a contiguous array, or a view of another library's through DLPack; new ones for the rest.

        Raises:
            ArgumentError: as for a call; or ``out`` does not fit.
        """
        return self._call(self._run, (inputs,), {}, out)

    def profile(self, inputs: Mapping[str, Any], *, runs: int = 30, peaks: Peaks | None = None) -> Profile:
        """How long each step takes in place.

        Args:
            inputs: name → array.
            runs: how often the model runs; medians count.
            peaks: what the machine can do; by default that is measured, which takes some seconds.

        Raises:
            ArgumentError: as for a call; or ``runs`` is less than 1.
        """
        if runs < 1:
            raise ArgumentError(f"runs is {runs}; it must be at least 1")
        target = self._model.target
        times: list[int] = []

        def profiled(bases: Sequence[int]) -> None:
            times[:] = [nanoseconds for segment in self._segments for nanoseconds in segment.profile(bases)]

        def run() -> list[int]:
            self._call(profiled, (inputs,), {}, None)
            return list(times)

        return measure_profile(run, self.facts, peaks or measure_peaks(target, target.threads), runs)

    def export(
        self, path: str | os.PathLike[str], *, name: str | None = None, weights: Literal["inside", "beside"] = "inside"
    ) -> None:
        """Write the model as a shared library, with a C header beside it (the same name, ``.h``).

        It needs nothing but the C library. :func:`ansorlite.load` runs it in Python; the header says how C does.

        Args:
            path: of the library.
            name: what the C functions' names begin with; by default from the path.
            weights: inside of the library, or in a file of their own beside it (the same name, ``.weights``).

        Raises:
            ArgumentError: a name that C does not take, or a model that does not run as native code alone.
            TargetError: there is no linker, or it fails.
            OSError: a file cannot be written.
        """
        file = Path(path)
        steps = [step for step in self._steps if not isinstance(step, _PythonStep)]
        if len(steps) < len(self._steps):
            raise ArgumentError("a part of this model runs in Python, so it cannot be exported; compile it with kernels only")
        kernels = {_symbol(n): kernel.compiled for n, kernel in enumerate(self._kernels) if isinstance(kernel, Kernel)}
        named = [replace(step, entry=kernels[step.entry].entry) if isinstance(step, Call) else step for step in steps]
        objects = {kernel.entry: kernel.code for kernel in kernels.values()}
        values = [Parameter(name, value.shape, value.dtype) for name, value in (*self.inputs.items(), *self.outputs.items())]
        description = Description(
            check_name(identifier(file.stem) if name is None else name),
            __version__,
            self._model.target.key,
            tuple(feature[1:] for feature in self._model.target.features.split(",") if feature.startswith("+")),
            tuple(values[: len(self.inputs)]),
            tuple(values[len(self.inputs) :]),
            self._temporaries,
            self._weights.nbytes,
            file.with_suffix(".weights").name if weights == "beside" and self._weights.nbytes else None,
            self.facts,
        )
        write_library(NativeModel(named, objects, self._weights, self._model.target), description, file)

    @cached_property
    def facts(self) -> tuple[StepFacts, ...]:
        """What each step is, in order."""
        model = self._model
        position_of = {group.output: position for group, position in zip(model.groups, model.assignments, strict=True)}
        facts = []
        for step in self.plan.steps:
            if not isinstance(step, Group):
                facts.append(_copied(self._layout.nbytes(step.source)))
                continue
            position = position_of[step.output]
            kernel, task = self._kernels[position], model.tasks[position][0]
            origin = kernel.origin if isinstance(kernel, Kernel) else None
            moved = sum(self._layout.nbytes(name) for name in (*step.inputs, step.output))
            candidate, latency = (origin.candidate, origin.latency) if origin else (None, None)
            program = f"{candidate.sketch} {','.join(map(str, candidate.row))}".strip() if candidate else ""
            name = f"{step.name} {'x'.join(map(str, model.graph.values[step.output].shape))}"
            facts.append(StepFacts(name, task.key, program, task.dag.flops, moved, latency))
        return (*facts, *(_copied(move.nbytes) for move in self._layout.leftovers()))

    def _run(self, bases: Sequence[int]) -> None:
        for segment in self._segments:
            segment(bases)

    def _bound(self) -> list[Step | _PythonStep]:
        """The steps with their addresses. A native kernel's symbol is its position's."""
        layout, model = self._layout, self._model
        position_of = {group.output: position for group, position in zip(model.groups, model.assignments, strict=True)}
        steps: list[Step | _PythonStep] = []
        for step in self.plan.steps:
            if not isinstance(step, Group):
                steps.append(layout.move(step))
                continue
            position = position_of[step.output]
            kernel = self._kernels[position]
            names = (*step.inputs, step.output)
            places = tuple(layout.address(name) for name in names)
            if isinstance(kernel, Kernel):
                steps.append(Call(_symbol(position), (*places, layout.workspace)))
            else:
                values = (model.graph.values[name] for name in names)
                steps.append(_PythonStep(kernel, tuple(zip(places, values, strict=True))))
        return [*steps, *layout.leftovers()]

    def _compiled(self) -> tuple[_Segment, ...]:
        """Each run of native steps as one function."""
        addresses = {_symbol(n): kernel.address for n, kernel in enumerate(self._kernels) if isinstance(kernel, Kernel)}
        segments: list[_Segment] = []
        native: list[Step] = []
        for step in (*self._steps, None):
            if native and (step is None or isinstance(step, _PythonStep)):
                segments.append(_NativeSteps(LoadedEntry(native, addresses, self._model.target), len(native)))
                native = []
            if isinstance(step, _PythonStep):
                segments.append(step)
            elif step is not None:
                native.append(step)
        return tuple(segments)


def _copied(nbytes: int) -> StepFacts:
    return StepFacts("copy", "", "", 0, 2 * nbytes, None)


def _symbol(position: int) -> str:
    return f"kernel{position}"


def _view(address: int, value: Value) -> Array:
    """An array on memory that somebody else keeps."""
    dtype = dtypes.NUMPY[value.dtype]
    memory = (ctypes.c_char * (math.prod(value.shape) * dtype.itemsize)).from_address(address)
    return np.ndarray(value.shape, dtype, memoryview(memory))
