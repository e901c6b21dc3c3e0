"""A U-Net (Ronneberger et al., 2015) with padded convolutions and batch normalisation."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


def _twice(inside: int, outside: int) -> nn.Sequential:
    first, second = nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.Conv2d(outside, outside, 3, padding=1, bias=False)
    return nn.Sequential(first, nn.BatchNorm2d(outside), nn.ReLU(), second, nn.BatchNorm2d(outside), nn.ReLU())


class UNet(nn.Module):
    """
    Args:
        widths: channels of each level, finest first.
    """

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 256), classes: int = 2) -> None:
        super().__init__()
        self.down = nn.ModuleList(_twice(inside, outside) for inside, outside in pairwise((3, *widths)))
        upwards = list(pairwise(widths[::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(inside, outside, 2, 2) for inside, outside in upwards)
        self.merge = nn.ModuleList(_twice(2 * outside, outside) for _, outside in upwards)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        levels: list[Tensor] = []
        for level in self.down:
            x = level(self.pool(x) if levels else x)
            levels.append(x)
        for up, merge, beside in zip(self.up, self.merge, reversed(levels[:-1]), strict=True):
            x = merge(torch.cat([beside, up(x)], dim=1))
        return self.head(x)
