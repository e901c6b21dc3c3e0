"""A temporal convolutional network with dilations (Bai et al., 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class CausalBlock(nn.Module):
    """Two dilated convolutions that see the past only, beside a shortcut."""

    def __init__(self, inside: int, outside: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.pad = (kernel - 1) * dilation
        self.conv1 = nn.Conv1d(inside, outside, kernel, dilation=dilation)
        self.conv2 = nn.Conv1d(outside, outside, kernel, dilation=dilation)
        self.shortcut = nn.Identity() if inside == outside else nn.Conv1d(inside, outside, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.conv1(functional.pad(x, (self.pad, 0))))
        y = torch.relu(self.conv2(functional.pad(y, (self.pad, 0))))
        return torch.relu(y + self.shortcut(x))


class TCN(nn.Module):
    """Each block looks twice as far back as the one before."""

    def __init__(self, inside: int = 32, width: int = 64, blocks: int = 6, kernel: int = 3, classes: int = 10) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(CausalBlock(width if n else inside, width, kernel, 1 << n) for n in range(blocks)))
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.blocks(x)[:, :, -1])
