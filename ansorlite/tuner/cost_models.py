"""The cost models by name. A new one is a file in ``cost_model/`` and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from ansorlite.cost_model import neural
from ansorlite.cost_model.blend import BlendedModel
from ansorlite.cost_model.gbdt import GBDT
from ansorlite.cost_model.protocol import CostModel
from ansorlite.cost_model.random import RandomModel
from ansorlite.cost_model.shared import Pool, SharedModel
from ansorlite.platforms.table import platform_of
from ansorlite.task import Task

#: What makes the models of a tuning, one a task, in order: of the tasks, and of the generator of all their random draws. They may
#: share what they learn.
CostModelsMaker: TypeAlias = Callable[[Sequence[Task], np.random.Generator], Sequence[CostModel]]


def shared(tasks: Sequence[Task], _: np.random.Generator) -> list[CostModel]:
    """One forest for all tasks, as Ansor has it; nothing is known before 100 programs were measured."""
    pool = Pool()
    return [SharedModel(pool, task.key) for task in tasks]


def together(model: Callable[[np.random.Generator], CostModel]) -> CostModelsMaker:
    """One model for all tasks, which learns from the first program on."""

    def made(tasks: Sequence[Task], rng: np.random.Generator) -> list[CostModel]:
        pool = Pool(model=model(rng), warm_up=1)
        return [SharedModel(pool, task.key) for task in tasks]

    return made


COST_MODELS: Final[Mapping[str, CostModelsMaker]] = {
    "own": lambda tasks, _: [BlendedModel(platform_of(task.target).prior(task.target), GBDT()) for task in tasks],
    "gbdt": lambda tasks, _: [GBDT() for _ in tasks],
    "shared": shared,
    "random": lambda tasks, rng: [RandomModel(each) for each in rng.spawn(len(tasks))],
    "tenset-mlp": together(lambda rng: neural.TensetMlp(rng)),
    "tlp": together(lambda rng: neural.Tlp(rng)),
    "mtl-tlp": together(lambda rng: neural.MultiTlp(rng)),
    "tree-lstm": together(lambda rng: neural.TreeLstm(rng)),
    "one-shot": together(lambda rng: neural.OneShot(rng)),
}
