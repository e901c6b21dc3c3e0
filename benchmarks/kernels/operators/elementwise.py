"""Chains of element-wise operations, which cost memory traffic in systems that run them one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto
from scipy.special import erf

from ansorlite import te
from ansorlite.topi.activations import gelu
from ansorlite.topi.elementwise import elementwise
from benchmarks.kernels.operators.operator import Array, Operator, node


@dataclass(frozen=True)
class ScaleShiftAddRelu(Operator):
    """``relu(x * scale + shift + y)``: batch normalisation and a residual; scale and shift by the last dimension."""

    shape: tuple[int, ...]

    weights = (2, 3)

    def tensors(self) -> list[te.Tensor]:
        x, y = te.placeholder(self.shape, name="X"), te.placeholder(self.shape, name="Y")
        scale, shift = te.placeholder(self.shape[-1:], name="scale"), te.placeholder(self.shape[-1:], name="shift")
        out = elementwise(lambda a, b, s, t: te.maximum(a * s + t + b, 0), x, y, scale, shift, name="residual")
        return [x, y, scale, shift, out]

    def numpy(self, *x: Array) -> Array:
        return np.asarray(np.maximum(x[0] * x[2] + x[3] + x[1], 0))

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.relu_(torch.addcmul(x[3], x[0], x[2]).add_(x[1]))

    def nodes(self) -> list[NodeProto]:
        return [node("Mul", "x0 x2", "a"), node("Add", "a x3", "b"), node("Add", "b x1", "c"), node("Relu", "c")]


@dataclass(frozen=True)
class BiasGelu(Operator):
    """``gelu(x + bias)``, by the error function."""

    rows: int
    width: int

    weights = (1,)

    def tensors(self) -> list[te.Tensor]:
        x, bias = te.placeholder((self.rows, self.width), name="X"), te.placeholder((self.width,), name="bias")
        return [x, bias, gelu(elementwise(lambda a, b: a + b, x, bias, name="biased"))]

    def numpy(self, *x: Array) -> Array:
        total = x[0] + x[1]
        result: Array = total * 0.5 * (1 + erf(total * np.float32(math.sqrt(0.5))))
        return result

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.nn.functional.gelu(x[0] + x[1])

    def nodes(self) -> list[NodeProto]:
        return [node("Add", "x0 x1", "t"), node("Gelu", "t")]


@dataclass(frozen=True)
class CellState(Operator):
    """``sigmoid(f) * c + sigmoid(i) * tanh(g)``: an LSTM's new cell state."""

    rows: int
    width: int

    def tensors(self) -> list[te.Tensor]:
        f, c, i, g = (te.placeholder((self.rows, self.width), name=name) for name in "fcig")

        def element(a: te.Expr, b: te.Expr, d: te.Expr, e: te.Expr) -> te.Expr:
            return te.sigmoid(a) * b + te.sigmoid(d) * te.tanh(e)

        return [f, c, i, g, elementwise(element, f, c, i, g, name="cell")]

    def numpy(self, *x: Array) -> Array:
        result: Array = x[1] / (1 + np.exp(-x[0])) + np.tanh(x[3]) / (1 + np.exp(-x[2]))
        return result

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.sigmoid(x[0]) * x[1] + torch.sigmoid(x[2]) * torch.tanh(x[3])

    def nodes(self) -> list[NodeProto]:
        return [
            node("Sigmoid", "x0", "a"),
            node("Sigmoid", "x2", "b"),
            node("Tanh", "x3", "c"),
            node("Mul", "a x1", "d"),
            node("Mul", "b c", "e"),
            node("Add", "d e"),
        ]


@dataclass(frozen=True)
class TransposeAdd(Operator):
    """``x + y^T`` of matrices: one of them is read against the grain."""

    m: int
    n: int

    def tensors(self) -> list[te.Tensor]:
        x, y = te.placeholder((self.m, self.n), name="X"), te.placeholder((self.n, self.m), name="Y")
        return [x, y, te.compute((self.m, self.n), lambda i, j: x[i, j] + y[j, i], name="sum")]

    def numpy(self, *x: Array) -> Array:
        return np.asarray(x[0] + x[1].T)

    def torch(self, torch: Any, *x: Any) -> Any:  # noqa: ARG002
        return x[0] + x[1].T

    def nodes(self) -> list[NodeProto]:
        return [node("Transpose", "x1", "t", perm=[1, 0]), node("Add", "x0 t")]
