"""The network of value learning: an LSTM that reads choices one by one, and says after each how good what follows can be
(Steiner et al., MLSys 2021)."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansorlite.cost_model.neural.examples import alone

_HIDDEN: Final = 64
_BATCH: Final = 64
_RATE: Final = 3e-3


class PrefixValue:
    """Zeros until it is fitted."""

    def __init__(self, rng: np.random.Generator, epochs: int) -> None:
        self._seed = int(rng.integers(2**62))
        self._epochs = epochs
        self._net: _Reader | None = None

    def fit(self, steps: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Learn from nothing the ``values`` (n, k) after each of the ``steps`` (n, k, d) of sequences."""
        with alone(self._seed):
            x, y = torch.from_numpy(steps).float(), torch.from_numpy(values).float()
            self._net = _Reader(x)
            optimiser = torch.optim.Adam(self._net.parameters(), lr=_RATE)
            for _ in range(self._epochs):
                for at in torch.randperm(len(x)).split(_BATCH):
                    optimiser.zero_grad()
                    nn.functional.mse_loss(self._net(x[at]), y[at]).backward()
                    optimiser.step()

    def predict(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(n,)``: the value after the last of ``steps`` (n, k, d), ``k`` at least 1."""
        if self._net is None or not len(steps):
            return np.zeros(len(steps))
        with alone(self._seed), torch.no_grad():
            return np.asarray(self._net(torch.from_numpy(steps).float())[:, -1].numpy(), np.float64)


class _Reader(nn.Module):
    def __init__(self, x: Tensor) -> None:
        super().__init__()
        steps = x.flatten(0, 1)
        deviation = steps.std(dim=0, correction=0)
        self.register_buffer("mean", steps.mean(dim=0))
        self.register_buffer("deviation", torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation)))
        self.lstm = nn.LSTM(x.shape[2], _HIDDEN, batch_first=True)
        self.value = nn.Linear(_HIDDEN, 1)

    def forward(self, x: Tensor) -> Tensor:
        """``(n, k)``"""
        read, _ = self.lstm((x - self.mean) / self.deviation)
        found: Tensor = self.value(read)[:, :, 0]
        return found
