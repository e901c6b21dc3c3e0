"""An encoder like BERT-base (Devlin et al., 2018), of fewer layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.models.zoo.attention import EncoderLayer


class Bert(nn.Module):
    """Words and a mask of which to look at -> hidden states."""

    def __init__(
        self, layers: int = 4, width: int = 768, heads: int = 12, hidden: int = 3072, words: int = 30522, positions: int = 128
    ) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.zeros(positions, width))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, hidden, norm_first=False) for _ in range(layers))

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """words, mask: (batch, positions), int64; where mask is 0 nobody looks."""
        x = self.norm(self.word(words) + self.position)
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -1e9
        for layer in self.layers:
            x = layer(x, bias)
        return x
