"""A block of a decoder like Llama's (Touvron et al., 2023) that adds one word to a cache of keys and values."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class DecoderBlock(nn.Module):
    """One new position, and the keys and values of those before it."""

    def __init__(self, width: int = 512, heads: int = 8, hidden: int = 1408, past: int = 255) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        size = width // heads
        angle = past / 10000.0 ** (torch.arange(0, size, 2) / size)
        self.register_buffer("cos", torch.cos(angle).repeat(2))
        self.register_buffer("sin", torch.sin(angle).repeat(2))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x: (batch, 1, width); keys, values: (batch, heads, past, width of a head) -> x, and both with one more."""
        y = self.norm1(x)
        query, key, value = (
            part(y).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        keys = torch.cat([keys, self._rotated(key)], dim=2)
        values = torch.cat([values, value], dim=2)
        mixed = functional.scaled_dot_product_attention(self._rotated(query), keys, values)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), keys, values

    def _rotated(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat([-second, first], dim=-1) * self.sin
