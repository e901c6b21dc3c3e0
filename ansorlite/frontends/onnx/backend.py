"""ONNX's own interface of a backend, so that its test suite, and whatever else speaks it, can run models here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep

from ansorlite.best import Programs
from ansorlite.errors import ArgumentError
from ansorlite.frontends.onnx.load import load
from ansorlite.frontends.onnx.open import open_model
from ansorlite.graph.executable import Bindable, Executable
from ansorlite.graph.hybrid import AnyModel, HybridExecutable, compile_any
from ansorlite.graph.open_executable import OpenExecutable
from ansorlite.graph.shared import SharedWeights
from ansorlite.task import Task


class Representation(BackendRep):  # type: ignore[misc]
    """A model that is ready to run.

    Attributes:
        names: the inputs that the caller gives, in order.
        model: what was compiled last; ``None`` before the first call.
    """

    def __init__(self, proto: onnx.ModelProto, kernel_for: Callable[[Task], Bindable]) -> None:
        self.model: AnyModel | None = None
        self._kernel_for = kernel_for
        self._executable = OpenExecutable(open_model(proto, "llvm"), self._compiled)
        self.names = list(self._executable.inputs)

    def _compiled(self, model: AnyModel, shared: SharedWeights | None) -> Executable | HybridExecutable:
        self.model = model
        return compile_any(model, self._kernel_for, shared)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Outputs, in the model's order.

        Args:
            inputs: in the model's order, or by name.

        Raises:
            ArgumentError: other inputs than the model has.
            ModelError: the model cannot be compiled for these.
        """
        del kwargs
        given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(self.names, inputs, strict=False))
        if given.keys() != set(self.names):
            raise ArgumentError(f"the inputs of the model are: {', '.join(self.names)}")
        # Scalars often come as numpy's scalars, not arrays.
        arrays = {name: np.asarray(datum) if isinstance(datum, np.generic) else datum for name, datum in given.items()}
        results = self._executable(arrays)
        return tuple(results[name] for name in self._executable.outputs)


class Backend(_Backend):  # type: ignore[misc]
    """Runs ONNX models by the best programs known without a database."""

    @classmethod
    def kernel_for(cls) -> Callable[[Task], Bindable]:
        """What makes the kernels of a model."""
        return Programs(None).kernel

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Representation:
        """Load ``model``; it is compiled when it first runs, and the shapes and values of its inputs are known.

        Raises:
            ModelError: it is malformed.
        """
        del device, kwargs
        return Representation(load(model), cls.kernel_for())

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> Any:
        """Run a single node of the newest operator set, or of that given as ``opset_version``."""
        del outputs_info
        arrays = [np.asarray(datum) for datum in inputs]
        names = [name for name in node.input if name]
        graph = helper.make_graph(
            [node],
            "node",
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in zip(names, arrays, strict=True)
            ],
            [helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        opset = helper.make_opsetid(node.domain, kwargs.get("opset_version", onnx.defs.onnx_opset_version()))
        return cls.prepare(helper.make_model(graph, opset_imports=[opset]), device).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"
