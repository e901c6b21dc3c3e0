"""Transposed convolution of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from ansorlite import te
from ansorlite.topi.activations import relu
from ansorlite.topi.conv import conv_transpose
from benchmarks.kernels.operators.operator import Array, Operator, node


@dataclass(frozen=True)
class ConvTranspose(Operator):
    """``x (batch, channels, size, size)`` with ``weight (channels, outputs, kernel, kernel)``."""

    batch: int
    channels: int
    size: int
    outputs: int
    kernel: int
    stride: int
    pad: int
    relu: bool = False

    weights = (1,)

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder((self.batch, self.channels, self.size, self.size), name="X")
        weight = te.placeholder((self.channels, self.outputs, self.kernel, self.kernel), name="W")
        pads = (self.pad, self.pad)
        out = conv_transpose(x, weight, strides=(self.stride, self.stride), before=pads, after=pads)
        return [x, weight, relu(out) if self.relu else out]

    def numpy(self, *x: Array) -> Array:
        full = (self.size - 1) * self.stride + self.kernel
        out = np.zeros((self.batch, self.outputs, full, full), np.float32)
        reach = (self.size - 1) * self.stride + 1
        for row in range(self.kernel):
            for column in range(self.kernel):
                product = np.tensordot(x[0], x[1][:, :, row, column], axes=(1, 0))
                places = (slice(row, row + reach, self.stride), slice(column, column + reach, self.stride))
                out[:, :, *places] += np.moveaxis(product, -1, 1)
        kept = slice(self.pad, full - self.pad)
        cut = np.ascontiguousarray(out[:, :, kept, kept])
        return np.maximum(cut, 0) if self.relu else cut

    def torch(self, torch: Any, *x: Any) -> Any:
        out = torch.nn.functional.conv_transpose2d(x[0], x[1], None, self.stride, self.pad)
        return torch.relu_(out) if self.relu else out

    def nodes(self) -> list[NodeProto]:
        attributes: dict[str, Any] = {"strides": [self.stride] * 2, "pads": [self.pad] * 4}
        if self.relu:
            return [node("ConvTranspose", "x0 x1", "t", **attributes), node("Relu", "t")]
        return [node("ConvTranspose", "x0 x1", **attributes)]
