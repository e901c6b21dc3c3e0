"""A compiled kernel or model, seen alike: named arrays in, named arrays out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ansorlite.api.compile import compile
from ansorlite.errors import ArgumentError
from ansorlite.graph.dimensions import ValuesNeededError, sizes_of
from ansorlite.graph.executable import Executable
from ansorlite.graph.hybrid import AnyModel, HybridExecutable, compile_any
from ansorlite.graph.open_model import OpenModel
from ansorlite.graph.profile import Profile
from ansorlite.measure.inputs import make_inputs
from ansorlite.programs.kernels import compile_candidate
from ansorlite.runtime.kernel import Kernel
from ansorlite.sketch.candidate import NAIVE
from ansorlite.task import Task
from ansorlite.te import placeholder
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.rewriting import with_unique_names
from ansorlite.te.tensor import Tensor

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Runnable:
    """Something that runs.

    Attributes:
        inputs: the inputs that it needs, as placeholders.
        random: makes random arrays for them.
        profile: how long each step takes on given arrays, where the program is a model.
    """

    inputs: tuple[Tensor, ...]
    random: Callable[[np.random.Generator], list[Array]]
    _call: Callable[[Mapping[str, Array]], Mapping[str, Array]]
    profile: Callable[[Mapping[str, Array]], Profile] | None = None

    def __call__(self, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        return self._call(arrays)

    @staticmethod
    def make(workload: Task | AnyModel, database: Path | None, space: str | None = None) -> Runnable:
        """Compile with the best programs that the database knows."""
        if isinstance(workload, Task):
            return _of_task(workload, compile(workload, database, space=space))
        return _of_model(workload, compile(workload, database, space=space))

    @staticmethod
    def make_naive(workload: Task | AnyModel) -> Runnable:
        """Compile the loops as written: serial, scalar, one thread."""
        if isinstance(workload, Task):
            return _of_task(workload, compile_candidate(workload, NAIVE))
        return _of_model(workload, compile_any(workload, lambda task: compile_candidate(task, NAIVE)))


def _of_model(model: AnyModel, executable: Executable | HybridExecutable) -> Runnable:
    unusual = [name for name, value in model.inputs.items() if value is None or 0 in value.shape]
    if unusual:
        raise ArgumentError(f"input {unusual[0]!r} is no tensor of numbers, or one without elements; run the model in Python")
    inputs = tuple(placeholder(value.shape, value.dtype, name) for name, value in model.inputs.items() if value)
    return Runnable(inputs, lambda rng: make_inputs(ComputeDAG(inputs, (), inputs), rng), executable, executable.profile)


def _of_task(task: Task, kernel: Kernel) -> Runnable:
    dag = with_unique_names(task.dag)
    names = [t.name for t in dag.inputs], [t.name for t in dag.outputs]

    def call(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        outputs = kernel(*(arrays[name] for name in names[0]))
        return dict(zip(names[1], outputs if isinstance(outputs, tuple | list) else (outputs,), strict=True))

    return Runnable(dag.inputs, lambda rng: make_inputs(dag, rng), call)


def fixed(model: Task | AnyModel | OpenModel, files: Mapping[str, str]) -> Task | AnyModel:
    """``model``, with its open dimensions, and the values that shapes depend on, as they are in files of arrays.

    Where there is no file for such a value, what depends on it runs in Python.

    Args:
        files: input name → ``.npy`` file.

    Raises:
        ArgumentError: a dimension is still open, or has two sizes, or a file is no such file or for no input.
    """
    if not isinstance(model, OpenModel):
        return model
    arrays = {name: _array(Path(file), name) for name, file in files.items() if name in model.inputs}
    sizes = sizes_of(model.inputs, {name: array.shape for name, array in arrays.items()})
    values: dict[str, Array] = {}
    while True:
        try:
            return model.built(model.specialize(model.shapes(sizes), values))
        except ValuesNeededError as error:
            if not error.names <= arrays.keys():
                return model.at(sizes)
            values |= {name: arrays[name] for name in error.names}


def load_inputs(program: Runnable, files: Mapping[str, str], seed: int) -> dict[str, Array]:
    """Arrays for every input: from the ``.npy`` files given by name, and seeded random ones for the rest.

    Raises:
        ArgumentError: a name that is no input, or a file that cannot be read or has another shape or dtype.
    """
    known = {tensor.name: tensor for tensor in program.inputs}
    arrays = dict(zip(known, program.random(np.random.default_rng(seed)), strict=True))
    for name, file in files.items():
        if name not in known:
            raise ArgumentError(f"there is no input {name!r}; the inputs are: {', '.join(known)}")
        arrays[name] = _read(Path(file), known[name])
    return arrays


def _read(path: Path, tensor: Tensor) -> Array:
    array = _array(path, tensor.name)
    if array.shape != tensor.shape or array.dtype.name != tensor.dtype:
        found, wanted = f"{array.dtype.name} of shape {array.shape}", f"{tensor.dtype} of shape {tensor.shape}"
        raise ArgumentError(f"{path} holds {found}, but input {tensor.name} is {wanted}")
    return array


def _array(path: Path, name: str) -> Array:
    """What is in a file for an input."""
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise ArgumentError(f"there is no file {path} for input {name}") from None
    except (OSError, ValueError, EOFError):
        raise ArgumentError(f"{path} for input {name} is not a .npy file; write it with numpy.save") from None
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{path} for input {name} holds several arrays; write one with numpy.save")
    return array
