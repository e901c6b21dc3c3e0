"""The generator of a DCGAN (Radford et al., 2015): 64 by 64 pixels of 100 numbers."""

from __future__ import annotations

from torch import Tensor, nn


class Generator(nn.Module):
    """Transposed convolutions, each twice as large as the one before."""

    def __init__(self, latent: int = 100, width: int = 64) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        channels = latent
        for factor in (8, 4, 2, 1):
            stride, pad = (2, 1) if parts else (1, 0)
            parts += [
                nn.ConvTranspose2d(channels, width * factor, 4, stride, pad, bias=False),
                nn.BatchNorm2d(width * factor),
                nn.ReLU(),
            ]
            channels = width * factor
        self.body = nn.Sequential(*parts, nn.ConvTranspose2d(channels, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)
