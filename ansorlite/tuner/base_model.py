"""Cost models that start from a data set of other tasks, as AutoTVM's transfer does:
``al.tune(cost_model=from_corpus(FOLDER))``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ansorlite.cost_model import GBDT, CostModel, Group
from ansorlite.cost_model.based import ENOUGH, BasedModel
from ansorlite.cost_model.boosting import ForestSettings
from ansorlite.cost_model.views import View
from ansorlite.dataset import read_corpus
from ansorlite.errors import ArgumentError
from ansorlite.task import Task
from ansorlite.tuner.cost_models import CostModelsMaker

#: Trees for the programs of all tasks.
LARGE: Final = ForestSettings(trees=200, leaves=16, learning_rate=0.1, feature_fraction=0.7, min_leaf=20)


def base(groups: Sequence[Group]) -> GBDT:
    """Trees that learn from programs of other tasks.

    Raises:
        ArgumentError: these are too few to learn anything that holds for another task.
    """
    count = sum(len(group.latencies) for group in groups)
    if count < ENOUGH:
        raise ArgumentError(f"a base model takes {ENOUGH} programs of other tasks, and there are {count}; tune more tasks first")
    trees = GBDT(LARGE)
    trees.fit(groups)
    return trees


def from_corpus(folder: Path | str) -> CostModelsMaker:
    """The maker of models that start from the data set in ``folder`` (``python -m ansorlite.dataset``), but for what it has of
    the task itself.

    Raises:
        CorpusError: there is no data set, or it cannot be used.
    """
    entries = read_corpus(Path(folder))

    def made(tasks: Sequence[Task], _: np.random.Generator) -> list[CostModel]:
        models: list[CostModel] = []
        for task in tasks:
            others = [entry for entry in entries if entry.task.key != task.key and entry.device == task.target.key]
            models.append(BasedModel(base([group for entry in others for group in entry.groups(View.FEATURES)])))
        return models

    return made
