"""A network that learns scores as a smooth function of points, to be climbed."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansorlite.cost_model.neural.examples import alone

_HIDDEN: Final = 64
_BATCH: Final = 256
_RATE: Final = 1e-2


class Surrogate:
    """Two hidden layers; smooth, so that there is a slope everywhere."""

    def __init__(self, rng: np.random.Generator, epochs: int) -> None:
        self._seed = int(rng.integers(2**62))
        self._epochs = epochs

    def fit(self, points: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
        """Learn ``scores`` (n,) of ``points`` (n, d)."""
        with alone(self._seed):
            x = torch.from_numpy(points).float()
            self._low, self._high = x.min(dim=0).values, x.max(dim=0).values
            self._span = (self._high - self._low).clamp(min=1e-6)
            y = torch.from_numpy(scores).float()
            y = (y - y.mean()) / y.std(correction=0).clamp(min=1e-9)
            self._net = nn.Sequential(
                nn.Linear(x.shape[1], _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, 1)
            )
            optimiser = torch.optim.Adam(self._net.parameters(), lr=_RATE)
            for _ in range(self._epochs):
                for at in torch.randperm(len(x)).split(_BATCH):
                    optimiser.zero_grad()
                    nn.functional.mse_loss(self._scores(x[at]), y[at]).backward()
                    optimiser.step()

    def ascend(self, starts: NDArray[np.float64], steps: int, rate: float) -> NDArray[np.float64]:
        """``(steps, n, d)``: where Adam leads from ``starts`` (n, d), step by step, within the points that were learnt from."""
        with alone(self._seed):
            self._net.requires_grad_(False)
            points = torch.from_numpy(starts).float().requires_grad_(True)
            optimiser = torch.optim.Adam([points], lr=rate)
            way = []
            for _ in range(steps):
                optimiser.zero_grad()
                (-self._scores(points).sum()).backward()
                optimiser.step()
                with torch.no_grad():
                    points.copy_(torch.minimum(torch.maximum(points, self._low), self._high))
                way.append(points.detach().clone())
            return np.asarray(torch.stack(way).numpy(), np.float64)

    def _scores(self, x: Tensor) -> Tensor:
        found: Tensor = self._net((x - self._low) / self._span)[:, 0]
        return found
