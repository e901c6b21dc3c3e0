"""What all neural models have in common: fitting from nothing by a seed, on one thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansorlite.cost_model.neural.examples import Examples, Scale, alone, examples, learnable, lists, tensors
from ansorlite.cost_model.neural.losses import ranking
from ansorlite.cost_model.protocol import Group
from ansorlite.cost_model.views import View

#: So many programs are scored at once.
_AT_ONCE = 1024


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Attributes:
        epochs: how often all programs are seen.
        batch: programs of a step.
        rate, decay: Adam's learning rate, and how much of the weights is forgotten.
    """

    epochs: int
    batch: int
    rate: float
    decay: float


class NeuralModel(ABC):
    """A :class:`~ansorlite.cost_model.protocol.CostModel` of one :class:`View`: zeros until it is fitted on a program that ran.

    A fit begins from nothing, by the same seed: the same groups give the same scores.
    """

    view: ClassVar[View]
    training: ClassVar[Training]
    #: So many first numbers of each item are no quantities.
    unscaled: ClassVar[int] = 0

    def __init__(self, rng: np.random.Generator, epochs: int | None = None) -> None:
        """``epochs``: others than those of :attr:`training`."""
        self._seed = int(rng.integers(2**62))
        self._epochs = self.training.epochs if epochs is None else epochs
        self._net: nn.Module | None = None
        self._scale: Scale | None = None

    @abstractmethod
    def network(self, numbers: int) -> nn.Module:
        """A new network: of ``x`` (n, items, numbers) and ``mask`` (n, items), ``(n,)`` scores."""

    @abstractmethod
    def train(self, net: nn.Module, known: Examples) -> None:
        """Make a new network good at ``known``, whose ``x`` is scaled."""

    def fit(self, groups: Sequence[Group]) -> None:
        """Train from nothing.

        Raises:
            ValueError: a number that is not finite.
        """
        self._net, self._scale = None, None
        groups = learnable(groups)
        if not groups:
            return
        with alone(self._seed):
            known = self.examples(groups)
            self._scale = Scale.of(known.x, known.mask, self.unscaled)
            known.x.copy_(self._scale(known.x, known.mask))
            net = self.network(known.x.shape[2])
            net.train()
            self.train(net, known)
            net.eval()
            self._net = net

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._net is None or self._scale is None or not features.size:
            return np.zeros(len(features))
        with alone(self._seed), torch.no_grad():
            x, mask = tensors(features)
            parts = [self.scores(self._net, self._scale(*part), part[1]) for part in _parts(x, mask)]
        return np.asarray(torch.cat(parts).numpy(), np.float64)

    def examples(self, groups: Sequence[Group]) -> Examples:
        """Groups that can be learnt from, as tensors."""
        return examples(groups)

    def scores(self, net: nn.Module, x: Tensor, mask: Tensor) -> Tensor:
        """``(n,)``: higher is faster."""
        found: Tensor = net(x, mask)
        return found

    def optimiser(self, net: nn.Module) -> torch.optim.Optimizer:
        """That of the training."""
        return torch.optim.Adam(net.parameters(), lr=self.training.rate, weight_decay=self.training.decay)


class RankingModel(NeuralModel):
    """Learns the order of the programs of each task (:func:`~ansorlite.cost_model.neural.losses.lambda_rank`)."""

    def train(self, net: nn.Module, known: Examples) -> None:
        optimiser = self.optimiser(net)
        for _ in range(self._epochs):
            for at in lists(known, self.training.batch):
                batch = known[at]
                optimiser.zero_grad()
                ranking(self.scores_of(net, batch), batch.labels, batch.task).backward()
                optimiser.step()

    def scores_of(self, net: nn.Module, batch: Examples) -> Tensor:
        """``(n,)``: of a batch in training."""
        return self.scores(net, batch.x, batch.mask)


def _parts(x: Tensor, mask: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(x.split(_AT_ONCE), mask.split(_AT_ONCE), strict=True)
