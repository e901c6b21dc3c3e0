"""A whole model as one callable: its kernels, called in a row by native code, on the places of the memory plan."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from ansorlite.codegen.entry import Address, Call, Step
from ansorlite.graph.describe import Value
from ansorlite.graph.fusion import Group
from ansorlite.graph.graph import Array
from ansorlite.graph.layout import Layout
from ansorlite.graph.memory import MemoryPlan, plan_memory
from ansorlite.graph.model import Model
from ansorlite.runtime.arguments import Signature
from ansorlite.runtime.kernel import Kernel
from ansorlite.runtime.load import LoadedEntry
from ansorlite.runtime.model_call import ModelCall
from ansorlite.target import Target
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


@dataclass(frozen=True)
class _NativeSteps:
    """Steps that are one native call."""

    loaded: LoadedEntry

    def __call__(self, bases: Sequence[int]) -> None:
        self.loaded.run(struct.pack(f"{len(bases)}P", *bases))


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
        self._layout = Layout.of(graph, self.plan)
        self._weights = self._layout.packed_weights()
        self._kernels = tuple(kernels)
        workspace = max((kernel.compiled.workspace for kernel in kernels if isinstance(kernel, Kernel)), default=0)
        temporaries = self._layout.workspace.offset + workspace
        self._call = ModelCall(Signature(self.inputs, self.outputs), temporaries, self._weights.ctypes.data)
        steps = self._bound(model)
        self.steps = len(steps)
        self._segments = self._compiled(steps, model.target)

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

    def _run(self, bases: Sequence[int]) -> None:
        for segment in self._segments:
            segment(bases)

    def _bound(self, model: Model) -> list[Step | _PythonStep]:
        """The steps with their addresses. A native kernel's symbol is its position's."""
        layout = self._layout
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

    def _compiled(self, steps: Sequence[Step | _PythonStep], target: Target) -> tuple[_Segment, ...]:
        """Each run of native steps as one function."""
        addresses = {_symbol(n): kernel.address for n, kernel in enumerate(self._kernels) if isinstance(kernel, Kernel)}
        segments: list[_Segment] = []
        native: list[Step] = []
        for step in (*steps, None):
            if native and (step is None or isinstance(step, _PythonStep)):
                segments.append(_NativeSteps(LoadedEntry(native, addresses, target)))
                native = []
            if isinstance(step, _PythonStep):
                segments.append(step)
            elif step is not None:
                native.append(step)
        return tuple(segments)


def _symbol(position: int) -> str:
    return f"kernel{position}"


def _view(address: int, value: Value) -> Array:
    """An array on memory that somebody else keeps."""
    dtype = dtypes.NUMPY[value.dtype]
    memory = (ctypes.c_char * (math.prod(value.shape) * dtype.itemsize)).from_address(address)
    return np.ndarray(value.shape, dtype, memoryview(memory))
