"""The one-shot tuner's predictor: trained once, it says what to measure of new tasks (Ryu et al., CC 2022;
ryujaehun/one-shot-tuner)."""

from __future__ import annotations

from typing import ClassVar, Final

import torch
from torch import Tensor, nn

from ansorlite.cost_model.neural.examples import Examples
from ansorlite.cost_model.neural.model import NeuralModel, Training
from ansorlite.cost_model.views import View

_LAYERS: Final = 3
_HEADS: Final = 4
_WIDTH: Final = 64
_HIDDEN: Final = 1024
_DROPOUT: Final = 0.25
#: An epoch has at least so many steps, as far as there are programs.
_STEPS: Final = 16
#: Labels are drawn as often from each of so many equal parts of [0, 1].
_BINS: Final = 100


class OneShot(NeuralModel):
    """A transformer learns the share of the best speed itself, fast programs being seen as often as the many slow ones.

    It reads tokens where the original reads 748 numbers of curves, knobs and shapes. The original's batches of 4,096 and its rate
    of 1e-4 are for millions of programs: a few thousand are cut into a number of batches, and learnt at ten times the rate.
    """

    view: ClassVar = View.TOKENS
    training: ClassVar = Training(epochs=200, batch=4096, rate=1e-3, decay=2e-4)

    def network(self, numbers: int) -> nn.Module:
        return _Encoder(numbers)

    def train(self, net: nn.Module, known: Examples) -> None:
        optimiser = self.optimiser(net)
        size = min(self.training.batch, -(-len(known) // _STEPS))
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self._epochs)
        bins = (known.labels * _BINS).long().clamp(max=_BINS - 1)
        weights = 1.0 / torch.bincount(bins, minlength=_BINS)[bins]
        for _ in range(self._epochs):
            for _ in range(-(-len(known) // size)):
                batch = known[torch.multinomial(weights, size, replacement=True)]
                optimiser.zero_grad()
                nn.functional.mse_loss(self.scores(net, batch.x, batch.mask), batch.labels).backward()
                optimiser.step()
            cosine.step()


class _Encoder(nn.Module):
    def __init__(self, numbers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, _HIDDEN, _DROPOUT, batch_first=True)
        self.widen = nn.Linear(numbers, _WIDTH)
        self.encoder = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
        self.score = nn.Linear(_WIDTH, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        tokens = self.encoder(self.widen(x), src_key_padding_mask=mask == 0)
        mean = (tokens * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        score: Tensor = self.score(mean)[:, 0]
        return score
