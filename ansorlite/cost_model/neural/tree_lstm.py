"""Tiramisu's cost model: a network as deep as the loops of a program (Baghdadi et al., MLSys 2021;
Tiramisu-Compiler/cost_model)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import torch
from torch import Tensor, nn

from ansorlite.cost_model.neural.examples import Examples
from ansorlite.cost_model.neural.losses import relative_error
from ansorlite.cost_model.neural.model import NeuralModel, Training
from ansorlite.cost_model.views import View
from ansorlite.features.loop_tree import TREE, Kind

#: The widths of Tiramisu's layers.
_WIDTHS: Final = (600, 350, 200, 180)
_DROPOUT: Final = 0.225
#: Columns that say where a node is and what, and are not scaled.
_SHAPE: Final = 1 + len(Kind)
_LOOP: Final = TREE.index(Kind.LOOP.name.lower())


class TreeLstm(NeuralModel):
    """What is computed in a loop becomes a vector, then the loop with all that is in it, up to the program: its seconds.

    Inner loops and computations of a loop are each read in order by an LSTM. The score is minus the natural logarithm of seconds,
    learnt by its relative error.
    """

    view: ClassVar = View.LOOPS
    unscaled: ClassVar = _SHAPE
    #: A batch is programs of one shape.
    training: ClassVar = Training(epochs=50, batch=32, rate=1e-3, decay=0.015)

    def network(self, numbers: int) -> nn.Module:
        return _Tree(numbers - 1)

    def scores(self, net: nn.Module, x: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = -net(x, mask)
        return found

    def optimiser(self, net: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(net.parameters(), lr=self.training.rate, weight_decay=self.training.decay)

    def train(self, net: nn.Module, known: Examples) -> None:
        net.centre.fill_(float(known.log.mean()))
        shapes = _by_shape(known)
        steps = sum(-(-len(each) // self.training.batch) for each in shapes) * self._epochs
        optimiser = self.optimiser(net)
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=self.training.rate, total_steps=steps)
        for _ in range(self._epochs):
            cuts = [cut for each in shapes for cut in each[torch.randperm(len(each))].split(self.training.batch)]
            for at in torch.randperm(len(cuts)).tolist():
                batch = known[cuts[at]]
                optimiser.zero_grad()
                relative_error(net(batch.x, batch.mask), batch.log).backward()
                optimiser.step()
                cycle.step()


def _by_shape(known: Examples) -> list[Tensor]:
    """Positions of the programs of each shape of tree."""
    shapes = torch.cat([known.x[:, :, :_SHAPE].flatten(1), known.mask], dim=1)
    _, number = shapes.unique(dim=0, return_inverse=True)
    return [torch.nonzero(number == each)[:, 0] for each in range(int(number.max()) + 1)]


class _Tree(nn.Module):
    def __init__(self, numbers: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width, following in zip((numbers, *_WIDTHS), _WIDTHS, strict=False):
            layers += [nn.Linear(width, following), nn.ELU(), nn.Dropout(_DROPOUT)]
        state = _WIDTHS[-1]
        self.own = nn.Sequential(*layers)
        self.inner, self.computed, self.roots = (nn.LSTM(state, state, batch_first=True) for _ in range(3))
        self.join = nn.Sequential(
            nn.Linear(2 * state + numbers, _WIDTHS[-2]), nn.ELU(), nn.Dropout(_DROPOUT), nn.Linear(_WIDTHS[-2], state), nn.ELU()
        )
        self.seconds = nn.Sequential(nn.Linear(state, state), nn.ELU(), nn.Linear(state, 1))
        self.register_buffer("centre", torch.zeros(()))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``(n,)``: ln of seconds; of programs of one shape."""
        count = int(mask[0].sum())
        parents: list[int] = x[0, :count, 0].long().tolist()
        loops: list[bool] = (x[0, :count, _LOOP] > 0).tolist()
        numbers = x[:, :count, 1:]
        below: list[list[int]] = [[] for _ in range(count)]
        for node, parent in enumerate(parents):
            if parent >= 0:
                below[parent].append(node)
        leaves = [node for node in range(count) if not below[node]]
        states = dict(zip(leaves, self.own(numbers[:, leaves]).unbind(dim=1), strict=True))
        # A node comes after the one around it.
        for node in reversed(range(count)):
            if below[node]:
                inner = self._read(self.inner, [states[each] for each in below[node] if loops[each]], x)
                computed = self._read(self.computed, [states[each] for each in below[node] if not loops[each]], x)
                states[node] = self.join(torch.cat([inner, computed, numbers[:, node]], dim=1))
        program = self._read(self.roots, [states[node] for node in range(count) if parents[node] < 0], x)
        found: Tensor = self.centre + self.seconds(program)[:, 0]
        return found

    def _read(self, lstm: nn.Module, states: Sequence[Tensor], x: Tensor) -> Tensor:
        """``(n, state)``: what an LSTM has after reading ``states`` in order; zeros of nothing."""
        if not states:
            return x.new_zeros(len(x), _WIDTHS[-1])
        _, (last, _) = lstm(torch.stack(tuple(states), dim=1))
        found: Tensor = last[0]
        return found
