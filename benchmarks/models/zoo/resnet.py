"""Residual networks in two and three dimensions (He et al., 2015; Hara et al., 2017)."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

_CONV: Final = {2: nn.Conv2d, 3: nn.Conv3d}
_NORM: Final = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
_POOL: Final = {2: nn.MaxPool2d, 3: nn.MaxPool3d}
_MEAN: Final = {2: nn.AdaptiveAvgPool2d, 3: nn.AdaptiveAvgPool3d}


def _conv(dims: int, inside: int, outside: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        _CONV[dims](inside, outside, kernel, stride, kernel // 2, bias=False),
        _NORM[dims](outside),
    )


class Block(nn.Module):
    """Convolutions beside a shortcut: two of 3, or with a bottleneck 1, 3, 1."""

    def __init__(self, dims: int, inside: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        outside = width * 4 if bottleneck else width
        parts = (
            [
                _conv(dims, inside, width, 1),
                nn.ReLU(),
                _conv(dims, width, width, 3, stride),
                nn.ReLU(),
                _conv(dims, width, outside, 1),
            ]
            if bottleneck
            else [_conv(dims, inside, width, 3, stride), nn.ReLU(), _conv(dims, width, width, 3)]
        )
        self.body = nn.Sequential(*parts)
        self.shortcut = nn.Identity() if stride == 1 and inside == outside else _conv(dims, inside, outside, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):
    """
    Args:
        dims: of space: 2 or 3.
        layers: blocks of each of the four stages.
    """

    def __init__(self, dims: int, layers: tuple[int, ...], bottleneck: bool, classes: int = 1000) -> None:
        super().__init__()
        channels = 64
        parts: list[nn.Module] = [_conv(dims, 3, channels, 7, 2), nn.ReLU(), _POOL[dims](3, 2, 1)]
        for stage, count in enumerate(layers):
            width = 64 << stage
            for number in range(count):
                parts.append(Block(dims, channels, width, 2 if stage and not number else 1, bottleneck))
                channels = width * 4 if bottleneck else width
        self.features = nn.Sequential(*parts, _MEAN[dims](1), nn.Flatten())
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x))


def resnet18() -> nn.Module:
    return ResNet(2, (2, 2, 2, 2), bottleneck=False)


def resnet50() -> nn.Module:
    return ResNet(2, (3, 4, 6, 3), bottleneck=True)


def resnet18_3d() -> nn.Module:
    return ResNet(3, (2, 2, 2, 2), bottleneck=False, classes=400)
