"""The cost models by name. A new one is a file in ``cost_model/`` and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from ansorlite.cost_model import neural
from ansorlite.cost_model.blend import BlendedModel, UncertainBlend
from ansorlite.cost_model.gbdt import GBDT, SMALL_TREES
from ansorlite.cost_model.prior_only import PriorOnly
from ansorlite.cost_model.protocol import CostModel
from ansorlite.cost_model.random import RandomModel
from ansorlite.cost_model.ranked import RankedTrees
from ansorlite.cost_model.shared import Pool, SharedModel
from ansorlite.cost_model.uncertain import Bagged
from ansorlite.platforms.table import platform_of
from ansorlite.task import Task
from ansorlite.task_scheduler import family

#: What makes the models of a tuning, one a task, in order: of the tasks, and of the generator of all their random draws. They may
#: share what they learn.
CostModelsMaker: TypeAlias = Callable[[Sequence[Task], np.random.Generator], Sequence[CostModel]]


def shared(tasks: Sequence[Task], _: np.random.Generator) -> list[CostModel]:
    """One forest for all tasks, as Ansor has it; nothing is known before 100 programs were measured."""
    pool = Pool()
    return [SharedModel(pool, task.key) for task in tasks]


def by_family(tasks: Sequence[Task], _: np.random.Generator) -> list[CostModel]:
    """A forest for the tasks of each family, as FamilySeer has it; it knows nothing before 64 programs a member were measured."""
    families = [family(task) for task in tasks]
    pools = {each: Pool(warm_up=_FAMILY_WARM_UP * families.count(each)) for each in families}
    return [SharedModel(pools[each], task.key) for each, task in zip(families, tasks, strict=True)]


def bagged(tasks: Sequence[Task], rng: np.random.Generator) -> list[CostModel]:
    """As ``"own"``, but of several smaller forests, which also say how sure they are."""
    return [
        UncertainBlend(platform_of(task.target).prior(task.target), Bagged(each, _MEMBERS, _MEMBER))
        for task, each in zip(tasks, rng.spawn(len(tasks)), strict=True)
    ]


#: Four forests of 20 trees take as long as one of 80.
_MEMBERS: Final = 4
_MEMBER: Final = replace(SMALL_TREES, trees=20)
_FAMILY_WARM_UP: Final = 64


def together(model: Callable[[np.random.Generator], CostModel]) -> CostModelsMaker:
    """One model for all tasks, which learns from the first program on."""

    def made(tasks: Sequence[Task], rng: np.random.Generator) -> list[CostModel]:
        pool = Pool(model=model(rng), warm_up=1)
        return [SharedModel(pool, task.key) for task in tasks]

    return made


COST_MODELS: Final[Mapping[str, CostModelsMaker]] = {
    "own": lambda tasks, _: [BlendedModel(platform_of(task.target).prior(task.target), GBDT()) for task in tasks],
    "bounded": lambda tasks, _: [BlendedModel(platform_of(task.target).prior(task.target), GBDT(bounds=True)) for task in tasks],
    "gbdt": lambda tasks, _: [GBDT() for _ in tasks],
    "ranked": lambda tasks, _: [RankedTrees() for _ in tasks],
    "shared": shared,
    "family": by_family,
    "bagged": bagged,
    "forest": lambda tasks, rng: [Bagged(each) for each in rng.spawn(len(tasks))],
    "draft": lambda tasks, _: [PriorOnly(platform_of(task.target).prior(task.target)) for task in tasks],
    "random": lambda tasks, rng: [RandomModel(each) for each in rng.spawn(len(tasks))],
    "tenset-mlp": together(lambda rng: neural.TensetMlp(rng)),
    "tlp": together(lambda rng: neural.Tlp(rng)),
    "mtl-tlp": together(lambda rng: neural.MultiTlp(rng)),
    "tree-lstm": together(lambda rng: neural.TreeLstm(rng)),
    "one-shot": together(lambda rng: neural.OneShot(rng)),
}
