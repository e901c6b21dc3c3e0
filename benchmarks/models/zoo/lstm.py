"""A recurrent network of LSTM layers (Hochreiter and Schmidhuber, 1997)."""

from __future__ import annotations

from torch import Tensor, nn


class LSTM(nn.Module):
    """A sequence -> a class of its last state."""

    def __init__(self, inside: int = 128, width: int = 256, layers: int = 2, classes: int = 10) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(inside, width, layers, batch_first=True)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.recurrent(x)
        return self.classifier(states[:, -1])
