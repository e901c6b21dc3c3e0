"""Small modules for the tests of the PyTorch backend."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def conv_net() -> nn.Sequential:
    features = [nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


class TransformerBlock(nn.Module):
    """Attention and two dense layers, each beside a shortcut."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.dense(self.norm2(x))


class Packed(nn.Module):
    """Runs an LSTM over sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, [x.shape[1], 2], batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


class Inverse(nn.Module):
    """Inverts, which PyTorch's exporter does not know."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.inv(x @ x.T + torch.eye(len(x)))


class Turned(nn.Module):
    """Returns what lies in memory in another order than its dimensions have."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.relu(x)
        return y.T, y.sum().expand(3)


class Several(nn.Module):
    """Takes and returns more than tensors."""

    def forward(self, x: Tensor, more: dict[str, Any]) -> dict[str, Any]:
        return {"nothing": None, "sum": x + more["y"] * more["scale"], "pair": (torch.relu(x), x.sum())}


class Largest(nn.Module):
    """Sorts long rows, which is no tensor expression."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.topk(torch.relu(x).tile(1000), 3).values


class Noisy(nn.Module):
    """Draws random numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(x, 0.5, training=True)


class Counting(nn.Module):
    """Changes a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return x * 2


class Views(nn.Module):
    """Returns a tensor, views of it, parts of another one, and a view of its argument."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = torch.relu(x)
        halves = (x * 2).chunk(2, dim=1)
        return y.T, y, y[1:, 2:4], *halves, x.view(-1)


class Overlapping(nn.Module):
    """Returns parts of a tensor that share elements."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.relu(x)
        return y[:, :5], y[:, 3:]


class Strided(nn.Module):
    """Steps through memory of a tensor whose dimensions lie there in another order, from ``begin`` on."""

    def __init__(self, begin: int | None = None) -> None:
        super().__init__()
        self.begin = begin

    def forward(self, x: Tensor) -> Tensor:
        y = (x + 1).T
        return y.as_strided((3, 4), (2, 1)) if self.begin is None else torch.as_strided(y, (3, 4), (1, 2), self.begin)


class Between(nn.Module):
    """Steps through what is between a tensor's elements."""

    def forward(self, x: Tensor) -> Tensor:
        return (x + 1)[:, ::2].as_strided((2, 5), (5, 1))


class Half(nn.Module):
    """Computes in bfloat16."""

    def forward(self, x: Tensor) -> Tensor:
        return x.bfloat16() * 2


class Masked(nn.Module):
    """Multiplies by what float16 does not hold: PyTorch does that in float32, and exports an infinity."""

    def forward(self, x: Tensor) -> Tensor:
        return (1 - torch.ones_like(x).half()) * -1e9


class Quarter(nn.Module):
    """Returns floats of one byte."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * 2).to(torch.float8_e4m3fn)


class Nothing(nn.Module):
    """Returns a tensor without elements."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)[2:]
