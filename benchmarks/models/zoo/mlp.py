"""A multi-layer perceptron: what the quantised one is made of."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn


class MLP(nn.Module):
    """Dense layers with ReLU between them, on a batch of sequences, which PyTorch exports as products and sums."""

    def __init__(self, widths: tuple[int, ...] = (784, 1024, 1024, 256, 10)) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        for inside, outside in pairwise(widths):
            parts += [nn.Linear(inside, outside), nn.ReLU()]
        self.body = nn.Sequential(*parts[:-1])

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)
