"""A vision transformer (Dosovitskiy et al., 2020; tiny, as by Touvron et al., 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.models.zoo.attention import EncoderLayer


class ViT(nn.Module):
    """Patches of 16 by 16 pixels and a token for the class."""

    def __init__(self, width: int = 192, heads: int = 3, layers: int = 12, pixels: int = 224, classes: int = 1000) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, (pixels // 16) ** 2 + 1, width))
        self.layers = nn.Sequential(*(EncoderLayer(width, heads, width * 4, norm_first=True) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], dim=1) + self.position
        return self.classifier(self.norm(self.layers(x))[:, 0])
