"""A whole model as one callable: its kernels bound to the places of the memory plan."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import numpy as np

from ansorlite.errors import ArgumentError
from ansorlite.graph.describe import Value
from ansorlite.graph.fusion import Group
from ansorlite.graph.graph import Array
from ansorlite.graph.memory import ALIGNMENT, Copy, MemoryPlan, plan_memory
from ansorlite.graph.model import Model
from ansorlite.task import Task
from ansorlite.te import dtypes


class Bindable(Protocol):
    """What an executable needs of a kernel (:class:`ansorlite.runtime.kernel.Kernel` has it)."""

    def bind(self, *arrays: Array) -> Callable[[], None]:
        """A call on fixed arrays, inputs then outputs; it writes the outputs in place."""


def compile_model(model: Model, kernel_for: Callable[[Task], Bindable]) -> Executable:
    """Make ``model`` callable. ``kernel_for`` is asked once for each distinct task."""
    return Executable(model, [kernel_for(task) for task, _ in model.tasks])


class Executable:
    """A model that runs. Calls from several threads take turns, as they share one arena.

    Attributes:
        inputs, outputs: name → shape and dtype.
        plan: where values live; ``plan.peak`` and ``plan.total`` are bytes with and without reuse.
        steps: how many kernels and copies one run takes.
    """

    def __init__(self, model: Model, kernels: list[Bindable]) -> None:
        """Bind ``kernels``, one for each of ``model.tasks``, to memory. Constants are laid out here, once."""
        graph = model.graph
        self.inputs: Mapping[str, Value] = model.inputs
        self.outputs: Mapping[str, Value] = model.outputs
        self.plan: Final[MemoryPlan] = plan_memory(graph, model.groups)
        self._lock = threading.Lock()
        self._given = {name: _aligned(value) for name, value in graph.inputs.items()}
        memory = _Memory(self.plan, self._given, graph.constants, graph.values)
        kernel_of = {group.output: kernels[position] for group, position in zip(model.groups, model.assignments, strict=True)}
        self._calls: list[Callable[[], None]] = []
        for step in self.plan.steps:
            if isinstance(step, Group):
                arrays = [memory.array(name) for name in (*step.inputs, step.output)]
                self._calls.append(kernel_of[step.output].bind(*arrays))
            else:
                self._calls.append(_copy(memory, step))
        self._results = {public: memory.array(name) for public, name in graph.outputs.items()}

    @property
    def steps(self) -> int:
        return len(self._calls)

    def __call__(self, /, *arrays: Any, **named: Any) -> dict[str, Array]:
        """Run the model.

        Args:
            arrays: one mapping of input name → array; or the inputs in the model's order.
            named: inputs by name.

        Returns:
            output name → array, the caller's own.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape or dtype.
        """
        given = self._by_name(arrays, named)
        with self._lock:
            for name, array in given.items():
                np.copyto(self._given[name], array)
            for call in self._calls:
                call()
            return {name: np.array(array) for name, array in self._results.items()}

    def _by_name(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Array]:
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            return self._by_name((), {**arrays[0], **named})
        names = ", ".join(self.inputs)
        if len(arrays) > len(self.inputs):
            raise ArgumentError(f"{len(arrays)} arrays given, but the model's inputs are: {names}")
        given = dict(zip(self.inputs, arrays, strict=False))
        for name in named:
            if name in given or name not in self.inputs:
                raise ArgumentError(
                    f"input {name!r} is {'given twice' if name in given else 'unknown'}; the model's inputs are: {names}"
                )
        given.update(named)
        missing = [name for name in self.inputs if name not in given]
        if missing:
            raise ArgumentError(f"input {missing[0]!r} is missing; the model's inputs are: {names}")
        return {name: _checked(name, array, self.inputs[name]) for name, array in given.items()}


class _Memory:
    """The arrays behind a model's values."""

    def __init__(
        self, plan: MemoryPlan, given: Mapping[str, Array], constants: Mapping[str, Array], values: Mapping[str, Value]
    ) -> None:
        self._plan = plan
        self._given = given
        self._constants = constants
        self._values = values
        self._arena = _aligned(Value((max(plan.peak, 1),), "uint8"))
        self._laid_out: dict[str, Array] = {}

    def array(self, name: str) -> Array:
        """The array that a value is in: a view of the arena, of an input, or of a constant."""
        value = self._values[name]
        place = self._plan.places.get(name)
        root, offset = (place.root, place.offset) if place else (name, 0)
        count = int(np.prod(value.shape, dtype=np.int64))
        buffer = self._buffer(root)
        return np.frombuffer(buffer, dtypes.NUMPY[value.dtype], count, offset).reshape(value.shape)

    def _buffer(self, root: str) -> Array:
        if root in self._plan.offsets:
            return self._arena[self._plan.offsets[root] :]
        if root in self._given:
            return self._given[root].reshape(-1).view(np.uint8)
        if root not in self._laid_out:
            # A constant whose memory is as it should be is used where it is.
            self._laid_out[root] = np.ascontiguousarray(self._constants[root]).reshape(-1).view(np.uint8)
        return self._laid_out[root]


def _aligned(value: Value) -> Array:
    """An uninitialised array that begins at a cache line."""
    dtype = dtypes.NUMPY[value.dtype]
    count = int(np.prod(value.shape, dtype=np.int64))
    memory = np.empty(count * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count * dtype.itemsize].view(dtype).reshape(value.shape)


def _copy(memory: _Memory, step: Copy) -> Callable[[], None]:
    source = memory.array(step.source).reshape(-1)
    target = memory.array(step.target).reshape(-1)
    start = step.offset // source.itemsize
    part = target[start : start + source.size]
    return lambda: np.copyto(part, source)


def _checked(name: str, array: Any, value: Value) -> Array:
    if not isinstance(array, np.ndarray | np.generic):
        raise ArgumentError(f"input {name!r} is a {type(array).__name__}, not a numpy array; convert it with numpy.asarray")
    if array.shape != value.shape:
        raise ArgumentError(f"input {name!r} has shape {array.shape}, but the model takes {value.shape}")
    if array.dtype != dtypes.NUMPY[value.dtype]:
        raise ArgumentError(f"input {name!r} is {array.dtype}; convert it with .astype({value.dtype!r})")
    return np.asarray(array)
