"""The face that every operator of the benchmark has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from ansorlite import te

Array: TypeAlias = np.ndarray[Any, Any]

_OPSET = 22
_IR_VERSION = 10


class Operator(ABC):
    """One computation of fixed shapes with one output.

    Attributes:
        weights: which inputs are constants in a trained model, by position.
    """

    weights: tuple[int, ...] = ()

    @abstractmethod
    def tensors(self) -> list[te.Tensor]:
        """The definition that is tuned: inputs in call order, then the output."""

    @abstractmethod
    def numpy(self, *x: Array) -> Array:
        """The same with numpy's own functions, as its users would write it."""

    @abstractmethod
    def torch(self, torch: Any, *x: Any) -> Any:
        """The same in eager PyTorch, as its users would write it; ``None`` where it has no such kernel.

        Args:
            torch: the module.
            x: its tensors.
        """

    @abstractmethod
    def nodes(self) -> list[NodeProto]:
        """The same as ONNX nodes, from ``x0``, ``x1``, ... to ``y``."""


def node(kind: str, inputs: str, output: str = "y", **attributes: Any) -> NodeProto:
    """An ONNX node.

    Args:
        inputs: their names, separated by blanks.
    """
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def constant(name: str, value: Array) -> NodeProto:
    """An ONNX node whose output ``name`` is ``value``."""
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))


def onnx_model(operator: Operator, constants: Mapping[int, Array] | None = None) -> onnx.ModelProto:
    """``operator`` as a model.

    Args:
        constants: inputs that are weights in the model, by position; the others are its inputs.
    """
    held = constants or {}
    *inputs, output = operator.tensors()
    graph = helper.make_graph(
        operator.nodes(),
        type(operator).__name__,
        [_info(f"x{n}", tensor) for n, tensor in enumerate(inputs) if n not in held],
        [_info("y", output)],
        [numpy_helper.from_array(array, f"x{n}") for n, array in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)


def _info(name: str, tensor: te.Tensor) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype)), tensor.shape)
