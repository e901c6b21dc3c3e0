"""The convolution of capsule networks: each element is a small matrix, and elements are multiplied as matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from onnx import NodeProto

from ansorlite import te
from ansorlite.topi.padding import pad
from benchmarks.kernels.operators.conv import convolve
from benchmarks.kernels.operators.operator import Array, Operator, constant, node

#: The matrices are of this size, as in the paper on capsules and in Ansor's benchmark.
_SIDE: Final = 4


@dataclass(frozen=True)
class CapsuleConv(Operator):
    """``x (batch, size, size, 4, 4, channels)`` with ``weight (kernel, kernel, 4, 4, channels, outputs)``."""

    batch: int
    size: int
    channels: int
    outputs: int
    kernel: int
    stride: int
    pad: int

    weights = (1,)

    @property
    def _places(self) -> int:
        return (self.size + 2 * self.pad - self.kernel) // self.stride + 1

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder((self.batch, self.size, self.size, _SIDE, _SIDE, self.channels), name="X")
        weight = te.placeholder((self.kernel, self.kernel, _SIDE, _SIDE, self.channels, self.outputs), name="W")
        border = (0, self.pad, self.pad, 0, 0, 0)
        padded = pad(x, before=border, after=border)
        ry, rx = te.reduce_axis(self.kernel, name="ry"), te.reduce_axis(self.kernel, name="rx")
        side, rc = te.reduce_axis(_SIDE, name="side"), te.reduce_axis(self.channels, name="rc")

        def element(n: te.Expr, h: te.Expr, w: te.Expr, i: te.Expr, j: te.Expr, co: te.Expr) -> te.Expr:
            read = padded[n, h * self.stride + ry, w * self.stride + rx, i, side, rc]
            return te.sum(read * weight[ry, rx, side, j, rc, co], axis=(ry, rx, side, rc))

        shape = (self.batch, self._places, self._places, _SIDE, _SIDE, self.outputs)
        return [x, weight, te.compute(shape, element, name="capsule")]

    # As a convolution of images: rows of the matrices join the batch, columns the channels.

    def numpy(self, *x: Array) -> Array:
        images = x[0].transpose(0, 3, 4, 5, 1, 2).reshape(*self._image)
        filters = x[1].transpose(3, 5, 2, 4, 0, 1).reshape(*self._filter)
        out = convolve(images, filters, self.stride, self.pad, 1, 1)
        return np.ascontiguousarray(out.reshape(*self._out).transpose(0, 4, 5, 1, 2, 3))

    def torch(self, torch: Any, *x: Any) -> Any:
        images = x[0].permute(0, 3, 4, 5, 1, 2).reshape(*self._image)
        filters = x[1].permute(3, 5, 2, 4, 0, 1).reshape(*self._filter)
        out = torch.nn.functional.conv2d(images, filters, None, self.stride, self.pad)
        return out.view(*self._out).permute(0, 4, 5, 1, 2, 3).contiguous()

    def nodes(self) -> list[NodeProto]:
        return [
            constant("image", np.asarray(self._image)),
            constant("filter", np.asarray(self._filter)),
            constant("out", np.asarray(self._out)),
            node("Transpose", "x0", "t0", perm=[0, 3, 4, 5, 1, 2]),
            node("Reshape", "t0 image", "images"),
            node("Transpose", "x1", "t1", perm=[3, 5, 2, 4, 0, 1]),
            node("Reshape", "t1 filter", "filters"),
            node("Conv", "images filters", "c", strides=[self.stride] * 2, pads=[self.pad] * 4),
            node("Reshape", "c out", "t2"),
            node("Transpose", "t2", perm=[0, 4, 5, 1, 2, 3]),
        ]

    @property
    def _image(self) -> tuple[int, ...]:
        return self.batch * _SIDE, _SIDE * self.channels, self.size, self.size

    @property
    def _filter(self) -> tuple[int, ...]:
        return _SIDE * self.outputs, _SIDE * self.channels, self.kernel, self.kernel

    @property
    def _out(self) -> tuple[int, ...]:
        return self.batch, _SIDE, _SIDE, self.outputs, self._places, self._places
