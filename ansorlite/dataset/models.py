"""The models that data sets judge, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ansorlite.cost_model import GBDT, CostModel, Group, RandomModel, neural
from ansorlite.cost_model.protocol import Prior
from ansorlite.dataset.entry import Entry, Floats
from ansorlite.dataset.judging import ModelMaker
from ansorlite.platforms.table import platform_of


class PriorModel:
    """A :class:`~ansorlite.cost_model.protocol.CostModel` that is a closed-form estimate, and learns nothing."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior

    def fit(self, groups: Sequence[Group]) -> None:
        """Nothing is learnt."""

    def predict(self, features: Floats) -> Floats:
        return self._prior(features)


def draft(entry: Entry, _: np.random.Generator) -> CostModel:
    """The closed-form estimate of the entry's target."""
    target = entry.task.target
    return PriorModel(platform_of(target).prior(target))


def models(epochs: int | None = None) -> Mapping[str, ModelMaker]:
    """By name. ``epochs``: as often neural models see all programs, instead of as often as their authors let them."""
    return {
        "random": lambda _, rng: RandomModel(rng),
        "draft": draft,
        "gbdt": lambda _entry, _rng: GBDT(),
        "tenset-mlp": lambda _, rng: neural.TensetMlp(rng, epochs),
        "tlp": lambda _, rng: neural.Tlp(rng, epochs),
        "mtl-tlp": lambda entry, rng: neural.MultiTlp(rng, entry.device, epochs),
        "tree-lstm": lambda _, rng: neural.TreeLstm(rng, epochs),
        "one-shot": lambda _, rng: neural.OneShot(rng, epochs),
    }
