"""TenSet's multi-layer perceptron (Zheng et al., NeurIPS Datasets and Benchmarks 2021; tlc-pack/tenset, ``mlp_model.py``)."""

from __future__ import annotations

from typing import ClassVar, Final

from torch import Tensor, nn

from ansorlite.cost_model.neural.model import RankingModel, Training
from ansorlite.cost_model.views import View

_HIDDEN: Final = 256


class TensetMlp(RankingModel):
    """Statements go through two layers each, and are summed; two residual layers and a last one score the sum.

    The ten numbers of the workload that TenSet adds to 164 features are not there: features here say what a program does in all.
    """

    view: ClassVar = View.FEATURES
    training: ClassVar = Training(epochs=50, batch=512, rate=7e-4, decay=1e-6)

    def network(self, numbers: int) -> nn.Module:
        return _Perceptron(numbers)


class _Perceptron(nn.Module):
    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.statement = nn.Sequential(nn.Linear(numbers, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU()) for _ in range(2))
        self.score = nn.Linear(_HIDDEN, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        program = (self.statement(x) * mask[:, :, None]).sum(dim=1)
        for block in self.blocks:
            program = program + block(program)
        score: Tensor = self.score(program)[:, 0]
        return score
