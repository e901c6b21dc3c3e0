"""Products of uint8 data and int8 weights, summed in int32, as quantised networks have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from ansorlite import te
from ansorlite.topi.padding import pad
from benchmarks.kernels.operators.conv import convolve
from benchmarks.kernels.operators.operator import Array, Operator, node


@dataclass(frozen=True)
class Int8Matmul(Operator):
    """``(m, k) uint8 @ (k, n) int8 -> (m, n) int32``"""

    m: int
    n: int
    k: int

    weights = (1,)

    def tensors(self) -> list[te.Tensor]:
        a = te.placeholder((self.m, self.k), "uint8", name="A")
        b = te.placeholder((self.k, self.n), "int8", name="B")
        k = te.reduce_axis(self.k, name="k")

        def element(i: te.Expr, j: te.Expr) -> te.Expr:
            return te.sum(te.cast(a[i, k], "int32") * te.cast(b[k, j], "int32"), axis=k)

        return [a, b, te.compute((self.m, self.n), element, name="C")]

    def numpy(self, *x: Array) -> Array:
        return np.asarray(np.matmul(x[0], x[1], dtype=np.int32))

    def torch(self, torch: Any, *x: Any) -> Any:  # noqa: ARG002
        return None  # torch._int_mm takes int8 on both sides, and is a plain loop where there is no VNNI: 50 to 100 times slower

    def nodes(self) -> list[NodeProto]:
        return [node("MatMulInteger", "x0 x1")]


@dataclass(frozen=True)
class Int8Conv(Operator):
    """``x (batch, channels, size, size) uint8`` with ``weight (outputs, channels, kernel, kernel) int8``, into int32."""

    batch: int
    channels: int
    size: int
    outputs: int
    kernel: int
    stride: int = 1
    pad: int = 0

    weights = (1,)

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder((self.batch, self.channels, self.size, self.size), "uint8", name="X")
        weight = te.placeholder((self.outputs, self.channels, self.kernel, self.kernel), "int8", name="W")
        border = (0, 0, self.pad, self.pad)
        padded = pad(x, before=border, after=border)
        places = (self.size + 2 * self.pad - self.kernel) // self.stride + 1
        rc = te.reduce_axis(self.channels, name="rc")
        ry, rx = te.reduce_axis(self.kernel, name="ry"), te.reduce_axis(self.kernel, name="rx")

        def element(n: te.Expr, co: te.Expr, h: te.Expr, w: te.Expr) -> te.Expr:
            read = padded[n, rc, h * self.stride + ry, w * self.stride + rx]
            return te.sum(te.cast(read, "int32") * te.cast(weight[co, rc, ry, rx], "int32"), axis=(rc, ry, rx))

        return [x, weight, te.compute((self.batch, self.outputs, places, places), element, name="conv")]

    def numpy(self, *x: Array) -> Array:
        return convolve(x[0].astype(np.int32), x[1].astype(np.int32), self.stride, self.pad, 1, 1)

    def torch(self, torch: Any, *x: Any) -> Any:  # noqa: ARG002
        return None  # its quantised convolutions take and give quantised tensors, not int32

    def nodes(self) -> list[NodeProto]:
        return [node("ConvInteger", "x0 x1", strides=[self.stride] * 2, pads=[self.pad] * 4)]
