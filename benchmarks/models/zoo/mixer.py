"""MLP-Mixer (Tolstikhin et al., 2021), size S/16."""

from __future__ import annotations

from torch import Tensor, nn


def _mlp(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class MixerBlock(nn.Module):
    """Mixes patches, then channels."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.patches, self.channels = _mlp(patches, width // 2), _mlp(width, width * 4)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    """Patches of 16 by 16 pixels."""

    def __init__(self, width: int = 512, blocks: int = 8, pixels: int = 224, classes: int = 1000) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.Sequential(*(MixerBlock((pixels // 16) ** 2, width) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)
        return self.classifier(self.norm(self.blocks(x)).mean(dim=1))
