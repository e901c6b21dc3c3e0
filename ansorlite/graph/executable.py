"""A whole model as one callable: its kernels, called in a row by native code, on the places of the memory plan."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ansorlite.codegen.entry import EntryStep
from ansorlite.errors import ArgumentError
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Array
from ansorlite.graph.image import Image
from ansorlite.graph.layout import MemoryLayout
from ansorlite.graph.memory import MemoryPlan, plan_memory
from ansorlite.graph.model import Model
from ansorlite.graph.profile import Profile, measure_profile
from ansorlite.graph.shared import SharedWeights, Weights
from ansorlite.graph.steps import Bindable, PythonStep, bound_steps, needs_of, prepare, symbol
from ansorlite.runtime.abroad import check_exported
from ansorlite.runtime.arguments import Signature
from ansorlite.runtime.builtin import DirectCalls
from ansorlite.runtime.device import LoadedSteps
from ansorlite.runtime.device_model_call import model_call
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.kernel import Kernel
from ansorlite.runtime.memory import check_fits
from ansorlite.runtime.model_call import direct_arguments
from ansorlite.runtime.not_copied import NotCopied
from ansorlite.runtime.step_timing import check_runs
from ansorlite.task import Task

if TYPE_CHECKING:
    from ansorlite.runtime.peaks import Peaks

__all__ = ["Bindable", "Executable", "compile_model"]


def compile_model(model: Model, kernel_for: Callable[[Task], Bindable], shared: SharedWeights | None = None) -> Executable:
    """Make ``model`` callable. ``kernel_for`` is asked once for each distinct task; other models have weights in ``shared``."""
    return Executable(model, [kernel_for(task) for task, _ in model.tasks], shared)


@dataclass(frozen=True)
class _NativeSteps:
    """Steps that are one native call."""

    loaded: LoadedSteps

    def __call__(self, bases: Sequence[int]) -> None:
        self.loaded.run(struct.pack(f"{len(bases)}P", *bases))

    def profile(self, bases: Sequence[int]) -> list[int]:
        """Run them; each one's nanoseconds."""
        return self.loaded.profile(struct.pack(f"{len(bases)}P", *bases))


_Segment: TypeAlias = PythonStep | _NativeSteps


class Executable(NotCopied):
    """A model that runs. Any number of threads may call it at once; each call has temporaries of its own.

    Attributes:
        inputs, outputs: name → shape and dtype.
        plan: where values live; ``plan.peak`` and ``plan.total`` are bytes with and without reuse.
        facts: what each step is, in order.
    """

    elsewhere = "load what its method export(path) wrote with ansorlite.load(path)"

    def __init__(self, model: Model, kernels: Sequence[Bindable], shared: SharedWeights | None = None) -> None:
        """Give every value of ``model`` a place, prepare constants, and make one native function of what calls ``kernels``.

        Args:
            kernels: one for each of ``model.tasks``.
            shared: where weights are kept that other models have, too. A model with such is not exported.

        Raises:
            MemoryLimitError: this machine has less memory than that takes.
        """
        self.inputs: Mapping[str, Value] = model.inputs
        self.outputs: Mapping[str, Value] = model.outputs
        self.plan: Final[MemoryPlan] = plan_memory(model.graph, model.groups)
        self._target = model.target
        self._kernels = {symbol(number): kernel for number, kernel in enumerate(kernels) if isinstance(kernel, Kernel)}
        layout = MemoryLayout.of(model.graph, self.plan, needs_of(model, kernels))
        workspace = max((kernel.compiled.workspace for kernel in self._kernels.values()), default=0)
        self._temporaries = layout.workspace.offset + workspace
        repeated = (constant.nbytes for constant in model.graph.constants.values() if not constant.flags.c_contiguous)
        check_fits(
            {
                "outputs": sum(layout.nbytes(name) for name in model.graph.outputs.values()),
                "temporaries": self._temporaries,
                "weights": layout.weight_bytes,
                "a constant": max(repeated, default=0),  # one value repeated, written out while it is prepared
            }
        )
        self._device = device = device_of(model.target)
        weights = device.alloc(layout.weight_bytes)
        layout.pack_weights(weights.array)
        device.copy_in(weights)
        prepare(model, layout, kernels, weights, device)
        layout, self._weights = (layout, Weights(weights)) if shared is None else shared.store(device, layout, weights)
        device.finish()  # calls may be on any stream
        self._call = model_call(device, Signature(self.inputs, self.outputs), self._temporaries, *self._weights.addresses)
        bound = tuple(bound_steps(model, layout, kernels, device))
        self.facts = tuple(step.facts for step in bound)
        self._steps = tuple(step.step for step in bound)
        self._segments = self._compiled()
        self._direct = self._directly()

    @property
    def steps(self) -> int:
        """How many kernels and copies one run takes."""
        return len(self._steps)

    @property
    def weight_bytes(self) -> int:
        """Bytes of constants, and of what is prepared of them, but for those that it found with other programs."""
        return self._weights.own.array.nbytes

    def __call__(self, /, *arrays: Any, **named: Any) -> dict[str, Array]:
        """Run the model.

        Args:
            arrays: one mapping of input name → array; or the inputs in the model's order. Arrays of numpy, or of any library
                that speaks DLPack, are read where they are if they are contiguous.
            named: inputs by name.

        Returns:
            output name → array, the caller's own: numpy's. Of a model for CUDA, if one input is on the GPU, CuPy's, and nothing
            is waited for: it runs on CuPy's current stream.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape or dtype.
        """
        return self._call(self._run, arrays, named, None, self._direct)

    def run(self, inputs: Mapping[str, Any], out: Mapping[str, Any]) -> dict[str, Array]:
        """Run the model, and write outputs where the caller wants them.

        Args:
            inputs: name → array.
            out: output name → a contiguous array, or a view of another library's through DLPack; new ones for the rest.

        Raises:
            ArgumentError: as for a call; or ``out`` does not fit.
        """
        return self._call(self._run, (inputs,), {}, out, self._direct)

    def profile(self, inputs: Mapping[str, Any], *, runs: int = 30, peaks: Peaks | None = None) -> Profile:
        """How long each step takes in place.

        Args:
            inputs: name → array.
            runs: how often the model runs; medians count.
            peaks: what the machine can do; by default that is measured, which takes some seconds.

        Raises:
            ArgumentError: as for a call; or ``runs`` is less than 1.
        """
        check_runs(runs)
        target = self._target
        return measure_profile(lambda: self.timed(inputs)[1], self.facts, peaks or self._device.peaks(target.threads), runs)

    def timed(self, inputs: Mapping[str, Any]) -> tuple[dict[str, Array], list[int]]:
        """Run the model once: its outputs, and the nanoseconds that each step took.

        Raises:
            ArgumentError: as for a call.
        """
        times: list[int] = []

        def profiled(bases: Sequence[int]) -> None:
            for segment in self._segments:
                times.extend(segment.profile(bases))

        return self._call(profiled, (inputs,), {}, None), times

    def export(
        self, path: str | os.PathLike[str], *, name: str | None = None, weights: Literal["inside", "beside"] = "inside"
    ) -> None:
        """Write the model as a shared library, with a C header beside it (the same name, ``.h``).

        It needs nothing but the C library, and for CUDA the driver. :func:`ansorlite.load` runs it in Python; the header says
        how C does.

        Args:
            path: of the library.
            name: what the C functions' names begin with; by default from the path.
            weights: inside of the library, or in a file of their own beside it (the same name, ``.weights``).

        Raises:
            ArgumentError: a name that C does not take, a model that does not run as native code alone, or a file that cannot be
                written.
            TargetError: there is no linker, or it fails.
        """
        assert not self._weights.others
        self._device.copy_out(self._weights.own)
        steps = [step for step in self._steps if not isinstance(step, PythonStep)]
        if len(steps) < len(self._steps):
            raise ArgumentError("a part of this model runs in Python, so it cannot be exported; compile it with kernels only")
        kernels = {name: kernel.compiled for name, kernel in self._kernels.items()}
        for compiled in kernels.values():
            check_exported(compiled, self._target)
        image = Image(
            self._target, self.inputs, self.outputs, kernels, steps, self.facts, self._temporaries, self._weights.own.array
        )
        image.write(Path(path), name, weights)

    def _run(self, bases: Sequence[int]) -> None:
        for segment in self._segments:
            segment(bases)

    def _directly(self) -> DirectCalls | None:
        """The call of a model that is native from end to end, for its temporaries, inputs and outputs."""
        match self._segments:
            case (_NativeSteps() as native,):
                fixed, arguments = direct_arguments(self._call.signature, self._temporaries, *self._weights.addresses)
                return native.loaded.direct(fixed, arguments)
            case _:
                return None

    def _compiled(self) -> tuple[_Segment, ...]:
        """Each run of native steps as one function."""
        kernels = {name: kernel.loaded for name, kernel in self._kernels.items()}
        segments: list[_Segment] = []
        native: list[EntryStep] = []
        for step in (*self._steps, None):
            if native and (step is None or isinstance(step, PythonStep)):
                segments.append(_NativeSteps(self._device.link(native, kernels)))
                native = []
            if isinstance(step, PythonStep):
                segments.append(step)
            elif step is not None:
                native.append(step)
        return tuple(segments)
