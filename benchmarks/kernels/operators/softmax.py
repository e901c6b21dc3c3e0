"""Softmax and layer normalisation: rows that are read several times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from ansorlite import te
from ansorlite.topi.elementwise import add
from ansorlite.topi.norm import layer_norm
from ansorlite.topi.softmax import softmax
from benchmarks.kernels.operators.operator import Array, Operator, node


def softmax_of(x: Array, axis: int) -> Array:
    """numpy's way to write it."""
    shifted = np.exp(x - x.max(axis, keepdims=True))
    result: Array = shifted / shifted.sum(axis, keepdims=True)
    return result


@dataclass(frozen=True)
class Softmax(Operator):
    """Over the last dimension of ``shape``, or another one."""

    shape: tuple[int, ...]
    axis: int = -1

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder(self.shape, name="X")
        return [x, softmax(x, axes=(self.axis,))]

    def numpy(self, *x: Array) -> Array:
        return softmax_of(x[0], self.axis)

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.softmax(x[0], self.axis)

    def nodes(self) -> list[NodeProto]:
        return [node("Softmax", "x0", axis=self.axis)]


@dataclass(frozen=True)
class LayerNorm(Operator):
    """Over the last dimension of ``(rows, width)``, with scale and shift."""

    rows: int
    width: int
    epsilon: float = 1e-5

    weights = (1, 2)

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder((self.rows, self.width), name="X")
        scale, shift = te.placeholder((self.width,), name="scale"), te.placeholder((self.width,), name="shift")
        return [x, scale, shift, add(layer_norm(x, scale, epsilon=self.epsilon), shift)]

    def numpy(self, *x: Array) -> Array:
        centered = x[0] - x[0].mean(-1, keepdims=True)
        result: Array = centered / np.sqrt((centered * centered).mean(-1, keepdims=True) + self.epsilon) * x[1] + x[2]
        return result

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.nn.functional.layer_norm(x[0], (self.width,), x[1], x[2], self.epsilon)

    def nodes(self) -> list[NodeProto]:
        return [node("LayerNormalization", "x0 x1 x2", axis=-1, epsilon=self.epsilon)]
