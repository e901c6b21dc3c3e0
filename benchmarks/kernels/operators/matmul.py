"""Matrix products: plain, in batches, with what networks put behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from onnx import NodeProto
from scipy.special import erf

from ansorlite import te
from ansorlite.topi.activations import gelu, relu
from ansorlite.topi.elementwise import add
from ansorlite.topi.matmul import matmul
from ansorlite.topi.shape import transpose
from ansorlite.topi.softmax import softmax
from benchmarks.kernels.operators.operator import Array, Operator, node
from benchmarks.kernels.operators.softmax import softmax_of


@dataclass(frozen=True)
class Matmul(Operator):
    """``(batch..., m, k) @ (batch..., k, n)``; outside of a batch the right operand is a weight."""

    m: int
    n: int
    k: int
    batch: tuple[int, ...] = ()

    @property
    def weights(self) -> tuple[int, ...]:  # type: ignore[override]
        return () if self.batch else (1,)

    def tensors(self) -> list[te.Tensor]:
        a = te.placeholder((*self.batch, self.m, self.k), name="A")
        b = te.placeholder((*self.batch, self.k, self.n), name="B")
        return [a, b, matmul(a, b)]

    def numpy(self, *x: Array) -> Array:
        return np.matmul(*x)

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.matmul(*x)

    def nodes(self) -> list[NodeProto]:
        return [node("MatMul", "x0 x1")]


class Activation(Enum):
    """What follows a dense layer's product and bias."""

    NONE = "none"
    RELU = "relu"
    GELU = "gelu"


@dataclass(frozen=True)
class Dense(Operator):
    """``activation((m, k) @ (k, n) + (n,))``"""

    m: int
    n: int
    k: int
    activation: Activation = Activation.NONE

    weights = (1, 2)

    def tensors(self) -> list[te.Tensor]:
        a = te.placeholder((self.m, self.k), name="A")
        b = te.placeholder((self.k, self.n), name="B")
        bias = te.placeholder((self.n,), name="bias")
        total = add(matmul(a, b), bias)
        match self.activation:
            case Activation.RELU:
                total = relu(total)
            case Activation.GELU:
                total = gelu(total)
        return [a, b, bias, total]

    def numpy(self, *x: Array) -> Array:
        total = x[0] @ x[1] + x[2]
        match self.activation:
            case Activation.RELU:
                return np.asarray(np.maximum(total, 0))
            case Activation.GELU:
                return np.asarray(total * 0.5 * (1 + erf(total * np.float32(math.sqrt(0.5)))))
        return np.asarray(total)

    def torch(self, torch: Any, *x: Any) -> Any:
        total = torch.addmm(x[2], x[0], x[1])
        match self.activation:
            case Activation.RELU:
                return torch.relu(total)
            case Activation.GELU:
                return torch.nn.functional.gelu(total)
        return total

    def nodes(self) -> list[NodeProto]:
        match self.activation:
            case Activation.RELU:
                return [node("Gemm", "x0 x1 x2", "t"), node("Relu", "t")]
            case Activation.GELU:
                return [node("Gemm", "x0 x1 x2", "t"), node("Gelu", "t")]
        return [node("Gemm", "x0 x1 x2")]


@dataclass(frozen=True)
class AttentionWeights(Operator):
    """``softmax(q k^T)`` of every head; ``q`` and ``k`` are ``(batch, length, heads, width)`` (Ansor's TBS subgraph)."""

    batch: int
    length: int
    heads: int
    width: int

    def tensors(self) -> list[te.Tensor]:
        shape = (self.batch, self.length, self.heads, self.width)
        q, k = te.placeholder(shape, name="Q"), te.placeholder(shape, name="K")
        scores = matmul(transpose(q, axes=(0, 2, 1, 3)), transpose(k, axes=(0, 2, 3, 1)))
        return [q, k, softmax(scores)]

    def numpy(self, *x: Array) -> Array:
        return softmax_of(np.matmul(x[0].transpose(0, 2, 1, 3), x[1].transpose(0, 2, 3, 1)), -1)

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.softmax(torch.matmul(x[0].permute(0, 2, 1, 3), x[1].permute(0, 2, 3, 1)), -1)

    def nodes(self) -> list[NodeProto]:
        return [
            node("Transpose", "x0", "q", perm=[0, 2, 1, 3]),
            node("Transpose", "x1", "k", perm=[0, 2, 3, 1]),
            node("MatMul", "q k", "scores"),
            node("Softmax", "scores", axis=-1),
        ]
