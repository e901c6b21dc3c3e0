"""Runs a model whose sizes are known only when it is called: picks a program by the sizes of the inputs, made when first needed.

Inputs are filled up to the sizes that the program takes, and results cropped; :mod:`ansorlite.graph.routes` says which program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ansorlite.errors import ArgumentError
from ansorlite.graph.cases import key_of
from ansorlite.graph.dimensions import OpenValue, ValuesNeededError
from ansorlite.graph.executable import Executable
from ansorlite.graph.graph import Array
from ansorlite.graph.hybrid import AnyModel, Datum, HybridExecutable
from ansorlite.graph.memo import Memo
from ansorlite.graph.open_model import OpenModel
from ansorlite.graph.profile import Profile
from ansorlite.graph.routes import KEEP, Route
from ansorlite.graph.shared import SharedWeights
from ansorlite.runtime.arguments import by_name, empty, imported, numpy_type
from ansorlite.runtime.cuda import device_type
from ansorlite.runtime.device_arrays import arrays_of, on_gpu
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.not_copied import NotCopied
from ansorlite.runtime.peaks import Peaks

#: Makes a program of a model; together with others', its weights are kept where the second says, if it does.
Build: TypeAlias = Callable[[AnyModel, SharedWeights | None], Executable | HybridExecutable]

#: Sizes, and sets of values, for which it is remembered which program serves them.
_REMEMBER: Final = 4096


class OpenExecutable(NotCopied):
    """A model that runs on inputs of any size that its open dimensions can have. Any number of threads may call it at once.

    Attributes:
        inputs: name → shape, with names for open dimensions, and dtype.
        outputs: names.
    """

    elsewhere = "load and compile the model's file"

    def __init__(self, model: OpenModel, build: Build, *, keep: int = KEEP) -> None:
        """
        Args:
            build: compiles the model for one set of sizes.
            keep: how many programs to keep; those that were not used for the longest time are made anew when they are needed.
        """
        self.inputs: Mapping[str, OpenValue] = model.inputs
        self.outputs: tuple[str, ...] = model.outputs
        self._model = model
        self._build = build
        self._arrays = arrays_of(device_of(model.target))
        self._types = {name: numpy_type(value.dtype) for name, value in model.inputs.items() if value.dtype}
        self._lock = Lock()
        self._by_value: frozenset[str] = frozenset()
        self._router = model.router(keep)
        self._routes: Memo[Route] = Memo(_REMEMBER)
        self._programs: Memo[Executable | HybridExecutable] = Memo(keep)
        self._weights = SharedWeights()

    @property
    def programs(self) -> int:
        """How many programs there are now."""
        return len(self._programs)

    def __call__(self, /, *arrays: Any, **named: Any) -> dict[str, Datum]:
        """Run the model.

        Args:
            arrays: one mapping of input name → array; or the inputs in the model's order.
            named: inputs by name.

        Returns:
            output name → array; it may be a view of a larger one, the caller's own too.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, of another dtype or number of dimensions, or of a size
                that another input or the model contradicts.
            ModelError: the model has no meaning for these sizes or values.
        """
        route, program, inputs = self._ready(arrays, named)
        results = program(inputs)
        return {name: datum[route.cropped[name]] if name in route.cropped else datum for name, datum in results.items()}

    def profile(self, inputs: Mapping[str, Any], *, runs: int = 30, peaks: Peaks | None = None) -> Profile:
        """How long each step takes of the program that runs these inputs, filled up to the sizes that it is made for.

        See :meth:`ansorlite.graph.executable.Executable.profile`.

        Raises:
            ArgumentError: as for a call; or ``runs`` is less than 1.
            ModelError: as for a call.
        """
        _, program, ready = self._ready((inputs,), {})
        return program.profile(ready, runs=runs, peaks=peaks)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        dims: Mapping[str, int] | None = None,
        name: str | None = None,
        weights: Literal["inside", "beside"] = "inside",
    ) -> None:
        """Write the model for one size of each open dimension as a shared library, which takes inputs of that size only.

        See :meth:`ansorlite.graph.executable.Executable.export`.

        Args:
            dims: open dimension → its size.

        Raises:
            ArgumentError: a dimension that is not there, or lacks a size; a name that C does not take; a model that does not
                run as native code alone; or a file that cannot be written.
            ModelError: the model has no meaning for these sizes.
            TargetError: there is no linker, or it fails.
        """
        self._build(self._model.at(dims or {}), None).export(path, name=name, weights=weights)

    def _ready(
        self, arrays: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[Route, Executable | HybridExecutable, dict[str, Datum]]:
        """The program for what a call is given, and what that is given."""
        found = by_name(self.inputs, arrays, named)
        given = {name: self._array(name, found[name]) for name in self.inputs}
        route = self._route(given)
        program = self._programs.get(
            route.program, lambda: self._build(self._model.built(self._router.graph(route.made_for)), self._weights)
        )
        padded = {name: self._padded(given[name], shape) for name, shape in route.padded.items()}
        sizes = {name: np.asarray(size, np.int64) for name, size in route.sizes.items()}
        ready = {**given, **padded, **sizes}
        for row in route.rows:
            ready[row.name], ready[row.layout] = row.given(given[row.name])
        return route, program, {name: ready[name] for name in program.inputs}

    def _array(self, name: str, datum: Any) -> Datum:
        expected = self._types.get(name)
        if expected is None:
            return datum
        array = datum
        if self._arrays is not None and on_gpu(datum):
            array, expected = self._arrays.view(f"input {name!r}", datum), device_type(expected.name)
        elif isinstance(datum, np.generic):
            array = np.asarray(datum)
        elif not isinstance(datum, np.ndarray):
            array = imported(f"input {name!r}", datum)
        if array.dtype != expected:
            raise ArgumentError(f"input {name!r} is {array.dtype}; convert it with .astype({expected.name!r})")
        return array

    def _padded(self, array: Datum, shape: tuple[int, ...]) -> Datum:
        """``array`` at the first places of one of ``shape``, its last places repeated; on the GPU, if it is there."""
        if self._arrays is None or not on_gpu(array):
            return _filled(empty(shape, array.dtype.name), array)
        with self._arrays.current():
            return _filled(self._arrays.made(shape, array.dtype.name), array)

    # Which program -----------------------------------------------------------------------------------------------

    def _route(self, given: Mapping[str, Datum]) -> Route:
        while True:
            shapes = {name: datum.shape for name, datum in given.items() if isinstance(datum, np.ndarray) or on_gpu(datum)}
            values = {name: self._on_host(name, given[name]) for name in sorted(self._by_value)}
            try:
                return self._routes.get(key_of(shapes, values), partial(self._router.route, shapes, values))
            except ValuesNeededError as error:
                with self._lock:
                    self._by_value |= error.names

    def _on_host(self, name: str, datum: Datum) -> Array:
        """What a program depends on by its values; of a GPU it is waited for."""
        return datum if self._arrays is None else self._arrays.on_host(name, datum)


def _filled(larger: Datum, array: Datum) -> Datum:
    """``larger`` with ``array`` at its first places, and its last places repeated."""
    shape = larger.shape
    larger[tuple(map(slice, array.shape))] = array
    filled = list(array.shape)
    for axis, (extent, upper) in enumerate(zip(array.shape, shape, strict=True)):
        if extent < upper:
            done = tuple(map(slice, filled[:axis]))
            rest = tuple(map(slice, filled[axis + 1 :]))
            larger[(*done, slice(extent, None), *rest)] = larger[(*done, slice(extent - 1, extent), *rest)]
            filled[axis] = upper
    return larger
