"""What integers of a quantised model stand for, as its ``quantize`` and ``dequantize`` nodes say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array, Node


@dataclass(frozen=True, eq=False)
class Scaling:
    """Integers ``q`` stand for ``(q - zero) * scale``.

    Attributes:
        scale: float32, positive and finite, with a finite reciprocal: of no dimensions, or one for each position along ``axis``.
        zero: an integer, or one for each position; ``None`` is 0.
        axis: a dimension of the integers; it means nothing where there is one scale and one zero point for all.
    """

    scale: Array
    zero: Array | None = None
    axis: int = 0

    @property
    def uniform(self) -> bool:
        """Whether one scale and one zero point are for all."""
        return self.scale.ndim == 0 and (self.zero is None or self.zero.ndim == 0)

    @property
    def offset(self) -> int:
        """The zero point of a uniform scaling."""
        return 0 if self.zero is None else int(self.zero)

    def is_same(self, other: Scaling) -> bool:
        """Whether both are uniform and equal."""
        return self.uniform and other.uniform and bool(self.scale == other.scale) and self.offset == other.offset

    def quantized(self, values: Array, dtype: str) -> Array:
        """The integers of ``dtype`` that stand for ``values``; of a uniform scaling only."""
        info = np.iinfo(dtype)
        result: Array = np.clip(np.rint(values.astype(np.float32) / self.scale) + self.offset, info.min, info.max)
        return result.astype(dtype)


def scaling_of(node: Node | None, operator: Operator, constants: Mapping[str, Array]) -> Scaling | None:
    """The scaling of a node with known float32 scales, not in blocks; ``None`` if it is no such node.

    Args:
        operator: ``quantize`` or ``dequantize``, which the node is to be.
    """
    if node is None or node.operator is not operator or node.attribute("block"):
        return None
    if any(name not in constants for name in node.inputs[1:]):
        return None
    scale, zero = constants[node.inputs[1]], constants[node.inputs[2]] if len(node.inputs) > 2 else None
    tiny = np.finfo(np.float32).tiny
    if scale.dtype != np.float32 or not ((scale >= tiny) & (scale <= 1 / tiny)).all():
        return None
    return Scaling(_vector(scale), None if zero is None or not zero.any() else _vector(zero), node.attribute("axis"))


def _vector(array: Array) -> Array:
    return array.reshape(()) if array.size == 1 else array


def spread(parameter: Array, axis: int, rank: int) -> Array:
    """A scale or zero point, shaped to be broadcast along ``axis`` of an array."""
    return parameter if parameter.ndim == 0 else parameter.reshape(tuple(-1 if d == axis else 1 for d in range(rank)))
