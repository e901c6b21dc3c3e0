"""Convolutions of any rank, channels first: strided, padded, dilated, grouped, depthwise; with what follows them in networks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
from onnx import NodeProto

from ansorlite import te
from ansorlite.topi.activations import relu
from ansorlite.topi.conv import conv
from benchmarks.kernels.operators.operator import Array, Operator, constant, node


class Epilogue(Enum):
    """What follows a convolution."""

    NONE = "none"
    RELU = "relu"
    BIAS_RELU = "bias relu"
    #: Batch normalisation with given statistics: a scale and a shift for each channel.
    BIAS_NORM_RELU = "bias batch-norm relu"


def convolve(x: Array, weight: Array, stride: int, pad: int, dilation: int, groups: int) -> Array:
    """numpy's way: the windows of the padded data as a view, then a product for each image and group."""
    rank = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *[(pad, pad)] * rank])
    reach = [(e - 1) * dilation + 1 for e in weight.shape[2:]]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(2, x.ndim)))
    places: tuple[slice, ...] = (slice(None, None, stride),) * rank + (slice(None, None, dilation),) * rank
    windows = windows[:, :, *places]
    taps = list(range(1 + rank, 1 + 2 * rank))
    # An image at a time: the product copies all its windows.
    images = [
        np.concatenate(
            [
                np.tensordot(filters, data, axes=(list(range(1, weight.ndim)), [0, *taps]))
                for data, filters in zip(np.split(image, groups), np.split(weight, groups), strict=True)
            ]
        )
        for image in windows
    ]
    return np.stack(images)


@dataclass(frozen=True)
class Conv(Operator):
    """``x (batch, channels, extents...)`` with ``weight (outputs, channels / groups, kernel, ...)``.

    Kernel, stride, pad and dilation are the same along every dimension.

    Depthwise where ``groups == channels``.
    """

    batch: int
    channels: int
    extents: tuple[int, ...]
    outputs: int
    kernel: int
    stride: int = 1
    pad: int = 0
    dilation: int = 1
    groups: int = 1
    epilogue: Epilogue = Epilogue.NONE

    @property
    def weights(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1, len(self.tensors()) - 1))

    @property
    def _rank(self) -> int:
        return len(self.extents)

    def tensors(self) -> list[te.Tensor]:
        x = te.placeholder((self.batch, self.channels, *self.extents), name="X")
        weight = te.placeholder((self.outputs, self.channels // self.groups, *[self.kernel] * self._rank), name="W")
        rank = self._rank
        pads = [self.pad] * rank
        out = conv(
            x,
            weight,
            strides=[self.stride] * rank,
            before=pads,
            after=pads,
            dilations=[self.dilation] * rank,
            groups=self.groups,
        )
        match self.epilogue:
            case Epilogue.NONE:
                return [x, weight, out]
            case Epilogue.RELU:
                return [x, weight, relu(out)]
            case Epilogue.BIAS_RELU:
                bias = te.placeholder((self.outputs,), name="bias")
                return [x, weight, bias, te.compute(out.shape, lambda *i: te.maximum(out[i] + bias[i[1]], 0.0), name="bias_relu")]
            case Epilogue.BIAS_NORM_RELU:
                bias, scale, shift = (te.placeholder((self.outputs,), name=name) for name in ("bias", "scale", "shift"))

                def element(*i: te.Expr) -> te.Expr:
                    return te.maximum((out[i] + bias[i[1]]) * scale[i[1]] + shift[i[1]], 0.0)

                return [x, weight, bias, scale, shift, te.compute(out.shape, element, name="bias_norm_relu")]

    def numpy(self, *x: Array) -> Array:
        out = convolve(x[0], x[1], self.stride, self.pad, self.dilation, self.groups)
        per_channel = [v.reshape(-1, *[1] * self._rank) for v in x[2:]]
        match self.epilogue:
            case Epilogue.BIAS_RELU:
                out += per_channel[0]
            case Epilogue.BIAS_NORM_RELU:
                out = (out + per_channel[0]) * per_channel[1] + per_channel[2]
        return out if self.epilogue is Epilogue.NONE else np.maximum(out, 0)

    def torch(self, torch: Any, *x: Any) -> Any:
        functional = torch.nn.functional
        function = (functional.conv1d, functional.conv2d, functional.conv3d)[self._rank - 1]
        bias = None if len(x) == 2 else x[2]
        out = function(x[0], x[1], bias, self.stride, self.pad, self.dilation, self.groups)
        if self.epilogue is Epilogue.BIAS_NORM_RELU:
            # The statistics are in scale and shift already: mean 0, variance 1.
            out = functional.batch_norm(out, *_statistics(torch, self.outputs), x[3], x[4], eps=0.0)
        return out if self.epilogue is Epilogue.NONE else torch.relu_(out)

    def nodes(self) -> list[NodeProto]:
        rank = self._rank
        attributes: dict[str, Any] = {
            "strides": [self.stride] * rank,
            "pads": [self.pad] * (2 * rank),
            "dilations": [self.dilation] * rank,
            "group": self.groups,
        }
        match self.epilogue:
            case Epilogue.NONE:
                return [node("Conv", "x0 x1", **attributes)]
            case Epilogue.RELU:
                return [node("Conv", "x0 x1", "t", **attributes), node("Relu", "t")]
            case Epilogue.BIAS_RELU:
                return [node("Conv", "x0 x1 x2", "t", **attributes), node("Relu", "t")]
            case Epilogue.BIAS_NORM_RELU:
                return [
                    node("Conv", "x0 x1 x2", "t", **attributes),
                    constant("mean", np.zeros(self.outputs, np.float32)),
                    constant("variance", np.ones(self.outputs, np.float32)),
                    node("BatchNormalization", "t x3 x4 mean variance", "n", epsilon=0.0),
                    node("Relu", "n"),
                ]


@cache
def _statistics(torch: Any, channels: int) -> tuple[Any, Any]:
    """(mean, variance) that change nothing, made once: a user has them ready."""
    return torch.zeros(channels), torch.ones(channels)
