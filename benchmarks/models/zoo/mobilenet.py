"""MobileNet-V2 (Sandler et al., 2018)."""

from __future__ import annotations

from typing import Final

from torch import Tensor, nn

#: (expansion, channels, blocks, first stride)
_STAGES: Final = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def _conv(inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outside)]


class InvertedResidual(nn.Module):
    """Wider, depthwise, narrower; beside a shortcut where shapes allow it."""

    def __init__(self, inside: int, outside: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inside * expansion
        wider = [] if expansion == 1 else [*_conv(inside, hidden, 1), nn.ReLU6()]
        self.body = nn.Sequential(*wider, *_conv(hidden, hidden, 3, stride, hidden), nn.ReLU6(), *_conv(hidden, outside, 1))
        self.residual = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.residual else self.body(x)


class MobileNetV2(nn.Module):
    """Of width 1."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        parts: list[nn.Module] = [*_conv(3, 32, 3, 2), nn.ReLU6()]
        channels = 32
        for expansion, width, count, stride in _STAGES:
            for number in range(count):
                parts.append(InvertedResidual(channels, width, 1 if number else stride, expansion))
                channels = width
        self.features = nn.Sequential(*parts, *_conv(channels, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(1280, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x))
