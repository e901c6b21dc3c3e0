"""TLP, which reads schedules as sentences, and MTL-TLP, which learns from several devices at once (Zhai et al., ASPLOS 2023;
zhaiyi000/tlp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np
import torch
from torch import Tensor, nn

from ansorlite.cost_model.neural.examples import Examples, examples, learnable
from ansorlite.cost_model.neural.model import RankingModel, Training
from ansorlite.cost_model.protocol import Group
from ansorlite.cost_model.views import View

#: As TLP trains it.
TLP: Final = Training(epochs=50, batch=1024, rate=7e-4, decay=1e-6)
_HIDDEN: Final = 256
_HEADS: Final = 8


class Tlp(RankingModel):
    """Tokens are widened to 256 numbers, attend to one another, and go through two residual blocks; what a last perceptron makes
    of each is summed. Nothing is cropped, and a list is the programs of one task."""

    view: ClassVar = View.TOKENS
    training: ClassVar = TLP

    def network(self, numbers: int) -> nn.Module:
        return _Transformer(numbers, 1)

    def scores(self, net: nn.Module, x: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = net(x, mask)[:, 0]
        return found


class MultiTlp(RankingModel):
    """One trunk for all devices, and a head for each; a program's label is that of the device that it was measured on."""

    view: ClassVar = View.TOKENS
    training: ClassVar = TLP

    def __init__(self, rng: np.random.Generator, device: str = "", epochs: int | None = None) -> None:
        """``device``: the one whose programs are to be scored. What was measured on others helps to learn."""
        super().__init__(rng, epochs)
        self._device = device
        self._devices: tuple[str, ...] = ()

    def fit(self, groups: Sequence[Group]) -> None:
        """Of each group's task and device; scores stay 0 where nothing was measured on the model's own device."""
        found = dict.fromkeys(group.device for group in learnable(groups))
        self._devices = (self._device, *(each for each in found if each != self._device))
        # The tasks of one device are no alternatives of those of another one.
        super().fit([replace(group, task=f"{group.device}\0{group.task}") for group in groups] if self._device in found else [])

    def examples(self, groups: Sequence[Group]) -> Examples:
        return examples(groups, self._devices)

    def network(self, numbers: int) -> nn.Module:
        return _Transformer(numbers, len(self._devices))

    def scores(self, net: nn.Module, x: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = net(x, mask)[:, 0]
        return found

    def scores_of(self, net: nn.Module, batch: Examples) -> Tensor:
        scores: Tensor = net(batch.x, batch.mask)
        return scores[torch.arange(len(batch)), batch.device]


class _Transformer(nn.Module):
    def __init__(self, numbers: int, devices: int) -> None:
        super().__init__()
        self.widen = nn.Sequential(
            nn.Linear(numbers, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, _HIDDEN), nn.ReLU()
        )
        self.attention = nn.MultiheadAttention(_HIDDEN, _HEADS, batch_first=True)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU()) for _ in range(2))
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(_HIDDEN, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
            for _ in range(devices)
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``(n, devices)``"""
        tokens = self.widen(x)
        attended, _ = self.attention(tokens, tokens, tokens, key_padding_mask=mask == 0, need_weights=False)
        tokens = tokens + attended
        for block in self.blocks:
            tokens = tokens + block(tokens)
        return torch.cat([(head(tokens)[:, :, 0] * mask).sum(dim=1, keepdim=True) for head in self.heads], dim=1)
