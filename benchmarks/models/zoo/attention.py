"""What transformers are made of: multi-head attention, and a layer of an encoder."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself (Vaswani et al., 2017)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        query, key, value = (self._split(part(x)) for part in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        """(batch, positions, width) -> (batch, heads, positions, width of a head)"""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


class EncoderLayer(nn.Module):
    """Attention, then two dense layers, each beside a shortcut.

    Args:
        norm_first: whether normalisation comes before each part, as in ViT, or after it, as in BERT.
    """

    def __init__(self, width: int, heads: int, hidden: int, norm_first: bool) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.dense = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.norm_first = norm_first

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.dense(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.dense(x))
