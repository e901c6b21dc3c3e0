"""A model as native code and a block of weights: what is written to a library, also for a machine that this one is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ansorlite import export
from ansorlite.codegen.driver_tables import GpuModel
from ansorlite.codegen.entry import Call, EntryStep
from ansorlite.codegen.object import Compiled, DeviceObject, Object
from ansorlite.errors import ArgumentError
from ansorlite.export.description import Description, Parameter, StepFacts
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Array
from ansorlite.graph.layout import MemoryLayout
from ansorlite.graph.memory import plan_memory
from ansorlite.graph.model import Model
from ansorlite.graph.steps import PythonStep, bound_steps, needs_of, prepare, symbol
from ansorlite.runtime.abroad import KernelAbroad
from ansorlite.runtime.arguments import numpy_type
from ansorlite.runtime.host import HostSpace
from ansorlite.runtime.memory import check_fits
from ansorlite.target import Target
from ansorlite.version import __version__


@dataclass(frozen=True, eq=False)
class Image:
    """Of one model.

    Attributes:
        inputs, outputs: name → shape and dtype.
        kernels: by the symbols that the steps call them by; all of the target's kind.
        temporaries: bytes that a call needs.
        weights: constants, and what is prepared of them.
    """

    target: Target
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]
    kernels: Mapping[str, Compiled]
    steps: Sequence[EntryStep]
    facts: tuple[StepFacts, ...]
    temporaries: int
    weights: Array

    def write(self, file: Path, name: str | None, weights: Literal["inside", "beside"]) -> None:
        """See :meth:`ansorlite.graph.executable.Executable.export`.

        Raises:
            ArgumentError, TargetError: as that says.
        """
        if weights not in ("inside", "beside"):
            raise ArgumentError(
                f'weights is {weights!r}; it must be "inside" of the library, or "beside" it in a file of their own'
            )
        values = [Parameter(name, value.shape, value.dtype) for name, value in (*self.inputs.items(), *self.outputs.items())]
        description = Description(
            export.check_name(export.identifier(file.stem) if name is None else name),
            __version__,
            self.target.key,
            self._features,
            self.target.sve_bytes,
            tuple(values[: len(self.inputs)]),
            tuple(values[len(self.inputs) :]),
            self.temporaries,
            self.weights.nbytes,
            export.checksum_of(self.weights),
            file.with_suffix(".weights").name if weights == "beside" and self.weights.nbytes else None,
            self.facts,
            object.__basicsize__,
            self.target.kind,
        )
        if self.target.kind == "cuda":
            export.write_gpu_library(self._on_gpu(), self.weights, description, file)
        else:
            export.write_library(self._native(), description, file)

    @property
    def _features(self) -> tuple[str, ...]:
        """What the processor must have; that of a GPU's host may be any."""
        if self.target.gpu is not None:
            return ()
        return tuple(feature[1:] for feature in self.target.features.split(",") if feature.startswith("+"))

    def _native(self) -> export.NativeModel:
        kernels = {symbol: kernel for symbol, kernel in self.kernels.items() if isinstance(kernel, Object)}
        named = [replace(step, entry=kernels[step.entry].entry) if isinstance(step, Call) else step for step in self.steps]
        objects = {kernel.entry: kernel.code for kernel in kernels.values()}
        if len(objects) < len(self.kernels):
            raise ArgumentError("two kernels of this model have one name; compile them with ansorlite.compile")
        return export.NativeModel(named, objects, self.weights, self.target)

    def _on_gpu(self) -> GpuModel:
        kernels = {symbol: kernel for symbol, kernel in self.kernels.items() if isinstance(kernel, DeviceObject)}
        given = (*self.inputs.values(), *self.outputs.values())
        values = [numpy_type(value.dtype).itemsize * math.prod(value.shape) for value in given]
        return GpuModel(self.steps, kernels, values, len(self.inputs), self.temporaries, self.weights.nbytes, self.target.cpu)


def image_abroad(model: Model, kernels: Sequence[KernelAbroad]) -> Image:
    """The model for a machine that this one is not.

    Args:
        kernels: one for each of ``model.tasks``.

    Raises:
        MemoryLimitError: this machine has less memory than the weights take.
    """
    layout = MemoryLayout.of(model.graph, plan_memory(model.graph, model.groups), needs_of(model, kernels))
    check_fits({"weights": layout.weight_bytes})
    space = HostSpace()
    weights = space.alloc(layout.weight_bytes)
    layout.pack_weights(weights.array)
    prepare(model, layout, kernels, weights, space)
    bound = tuple(bound_steps(model, layout, kernels, space))
    compiled = {symbol(number): kernel.compiled for number, kernel in enumerate(kernels)}
    workspace = max((kernel.workspace for kernel in compiled.values()), default=0)
    return Image(
        model.target,
        model.inputs,
        model.outputs,
        compiled,
        [each.step for each in bound if not isinstance(each.step, PythonStep)],
        tuple(each.facts for each in bound),
        layout.workspace.offset + workspace,
        weights.array,
    )
