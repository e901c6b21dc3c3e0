"""Models whose shapes depend on the values of inputs: compiled when those are seen, once for each different set of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from ansorlite.frontends.onnx.importer import ValuesNeededError, import_model
from ansorlite.frontends.onnx.models import model_of
from ansorlite.graph.executable import Bindable, Executable
from ansorlite.graph.graph import Array
from ansorlite.graph.hybrid import AnyModel, Datum, HybridExecutable, compile_any
from ansorlite.target import Target
from ansorlite.task import Task


class SpecializingExecutable:
    """An ONNX model that is compiled for the shapes, and where need be the values, of what it is called with.

    Attributes:
        model: what was compiled last; ``None`` before the first call.
    """

    def __init__(self, proto: onnx.ModelProto, target: str | Target, kernel_for: Callable[[Task], Bindable]) -> None:
        self.model: AnyModel | None = None
        self._proto = proto
        self._target = target
        self._kernel_for = kernel_for
        self._by_value: frozenset[str] = frozenset()
        self._compiled: dict[object, tuple[AnyModel, Executable | HybridExecutable]] = {}

    def __call__(self, inputs: Mapping[str, Datum]) -> dict[str, Datum]:
        """Run the model on ``inputs``: name → array, or a list of arrays where it takes a sequence.

        Raises:
            ModelError: the model cannot be compiled for them.
        """
        key = self._key(inputs)
        while key not in self._compiled:
            try:
                self._compiled[key] = self._compile(inputs)
            except ValuesNeededError as error:
                self._by_value |= error.names
                key = self._key(inputs)
        self.model, executable = self._compiled[key]
        return executable({name: inputs[name] for name in executable.inputs})

    def _key(self, inputs: Mapping[str, Datum]) -> object:
        return tuple(self._part(name, datum) for name, datum in inputs.items())

    def _part(self, name: str, datum: Datum) -> object:
        if not isinstance(datum, np.ndarray):
            return name
        return name, datum.shape, datum.dtype.name, datum.tobytes() if name in self._by_value else b""

    def _compile(self, inputs: Mapping[str, Datum]) -> tuple[AnyModel, Executable | HybridExecutable]:
        shapes = {name: datum.shape for name, datum in inputs.items() if isinstance(datum, np.ndarray)}
        values: dict[str, Array] = {name: inputs[name] for name in self._by_value}
        model = model_of(import_model(self._proto, shapes, values), self._target)
        return model, compile_any(model, self._kernel_for)
