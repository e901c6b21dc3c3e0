"""Single nodes by the numpy meaning of their own converters, at once: so that what runs in Python is what would run natively."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx

from ansorlite.errors import ExpressionError, ModelError
from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.frontends.onnx.operators.table import Converter
from ansorlite.frontends.onnx.scope import Attempt, NameScope
from ansorlite.frontends.onnx.segments import Slot
from ansorlite.frontends.onnx.types import as_due, check_inputs
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Operator, Use, Value, applied
from ansorlite.graph.hybrid import Datum
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate


class _AtOnce(GraphBuilder):
    """Computes what is applied: every value is a constant."""

    def apply(self, operator: Operator, *inputs: str, label: str = "", **attributes: Any) -> str:
        arrays = [self.array(name) for name in inputs]
        uses = tuple(Value(array.shape, array.dtype.name) for array in arrays if array is not None)
        (result,) = evaluate(_dag((operator, uses, tuple(attributes.items()))), [array for array in arrays if array is not None])
        return self.constant(result, label or "value")


@lru_cache(maxsize=256)
def _dag(use: Use) -> ComputeDAG:
    tensors, result = applied(*use)
    return ComputeDAG.of([*tensors, result])


class MeaningNode:
    """A node as a function of those of its inputs that are not constant.

    Args:
        convert: its converter.
        opset: version of the standard operators.
        known: those inputs that are constant.
        otherwise: makes what computes the cases that there is no converter for, of the same inputs; ``None`` if nothing does.
    """

    def __init__(
        self,
        node: onnx.NodeProto,
        convert: Converter,
        opset: int,
        known: Mapping[str, Datum],
        otherwise: Callable[[], Callable[[Sequence[Datum]], list[Datum]]] | None,
    ) -> None:
        self._node, self._convert, self._opset, self._otherwise = node, convert, opset, otherwise
        self._known = {name: known[name] for name in node.input if name in known}
        self.inputs = tuple(dict.fromkeys(name for name in node.input if name and name not in known))

    def __call__(self, data: Sequence[Datum]) -> list[Datum]:
        """The node's results, in order; those without a name are left out.

        Raises:
            ModelError: its parts do not fit together, or it is a case that there is no converter for.
        """
        given = {**self._known, **dict(zip(self.inputs, data, strict=True))}
        try:
            return self._converted(given)
        except UnsupportedError as error:
            if self._otherwise is None:
                raise ModelError(f"it is not supported: {error}") from None
        return self._otherwise()(data)

    def _converted(self, given: Mapping[str, Datum]) -> list[Datum]:
        if not all(map(_has_arithmetic, given.values())):
            raise UnsupportedError("an input has no arithmetic")
        wanted = [bool(name) for name in self._node.output]
        slots = [Slot.constant(name, given[name]) if name else None for name in self._node.input]
        attempt = Attempt(self._node, slots, [], wanted, NameScope({}, {self._node.domain: self._opset}, ""))
        variables = check_inputs(attempt)
        builder = _AtOnce()
        places = [builder.constant(given[name], name) if name else None for name in self._node.input]
        node = NodeView(self._node, places, wanted, self._opset, builder, at_once=True)
        try:
            names = as_due(attempt, variables, node, self._convert(node))
        except (ExpressionError, ModelError):
            if all(datum.size for datum in given.values()):
                raise
            raise UnsupportedError("an input has no elements") from None
        return [builder.array(name) for name, output in zip(names, self._node.output, strict=False) if output]


def _has_arithmetic(datum: Datum) -> bool:
    return isinstance(datum, np.ndarray) and datum.dtype.name in dtypes.NUMPY
