"""Reductions: sums, norms, the place of the largest element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from ansorlite import te
from ansorlite.topi.elementwise import elementwise
from ansorlite.topi.reduction import reduce_max, reduce_sum, reduce_sum_square
from benchmarks.kernels.operators.operator import Array, Operator, constant, node


@dataclass(frozen=True)
class Sum(Operator):
    """Over some dimensions of ``shape``."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder(self.shape, name="X")
        return [x, reduce_sum(x, axes=self.axes)]

    def numpy(self, *x: Array) -> Array:
        return np.asarray(x[0].sum(self.axes))

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.sum(x[0], self.axes)

    def nodes(self) -> list[NodeProto]:
        return [constant("axes", np.asarray(self.axes)), node("ReduceSum", "x0 axes", keepdims=0)]


@dataclass(frozen=True)
class Max(Operator):
    """Over some dimensions of ``shape``."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder(self.shape, name="X")
        return [x, reduce_max(x, axes=self.axes)]

    def numpy(self, *x: Array) -> Array:
        return np.asarray(x[0].max(self.axes))

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.amax(x[0], self.axes)

    def nodes(self) -> list[NodeProto]:
        return [constant("axes", np.asarray(self.axes)), node("ReduceMax", "x0 axes", keepdims=0)]


@dataclass(frozen=True)
class MatrixNorm(Operator):
    """The square root of the sum of squares of each ``(m, n)`` matrix (Ansor's NRM)."""

    batch: int
    m: int
    n: int

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder((self.batch, self.m, self.n), name="X")
        return [x, elementwise(te.sqrt, reduce_sum_square(x, axes=(1, 2)), name="norm")]

    def numpy(self, *x: Array) -> Array:
        return np.asarray(np.linalg.norm(x[0], axis=(1, 2)))

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.linalg.matrix_norm(x[0])

    def nodes(self) -> list[NodeProto]:
        return [constant("axes", np.asarray([1, 2])), node("ReduceL2", "x0 axes", keepdims=0)]


@dataclass(frozen=True)
class SumOfSquares(Operator):
    """Of ``length`` elements.

    Attributes:
        dot: whether numpy and PyTorch take their dot product instead of a product and a sum.
    """

    length: int
    dot: bool = False

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder((self.length,), name="X")
        return [x, reduce_sum_square(x)]

    def numpy(self, *x: Array) -> Array:
        return np.asarray(np.dot(x[0], x[0]) if self.dot else (x[0] * x[0]).sum())

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.dot(x[0], x[0]) if self.dot else (x[0] * x[0]).sum()

    def nodes(self) -> list[NodeProto]:
        return [node("ReduceSumSquare", "x0", keepdims=0)]


@dataclass(frozen=True)
class ArgMax(Operator):
    """Where each row of ``(rows, width)`` is largest: first the maximum, then the least place that has it."""

    rows: int
    width: int

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder((self.rows, self.width), name="X")
        peak = reduce_max(x, axes=(1,))
        r = te.reduce_axis(self.width, name="r")

        def place(i: te.Expr) -> te.Expr:
            return te.min(te.if_then_else(x[i, r] == peak[i], te.cast(r, "int64"), te.cast(self.width, "int64")), axis=r)

        return [x, te.compute((self.rows,), place, name="argmax")]

    def numpy(self, *x: Array) -> Array:
        return np.asarray(x[0].argmax(1))

    def torch(self, torch: Any, *x: Any) -> Any:
        return torch.argmax(x[0], 1)

    def nodes(self) -> list[NodeProto]:
        return [node("ArgMax", "x0", axis=1, keepdims=0)]
