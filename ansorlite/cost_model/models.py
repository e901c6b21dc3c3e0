"""The cost models by name. A new one is a file beside these and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from ansorlite.cost_model.blend import BlendedModel
from ansorlite.cost_model.draft import Draft
from ansorlite.cost_model.gbdt import GBDT
from ansorlite.cost_model.protocol import CostModel
from ansorlite.cost_model.random import RandomModel
from ansorlite.errors import ArgumentError
from ansorlite.task import Task

#: What makes the models of a tuning, one a task, in order: of the tasks, and of the generator of all their random draws. They may
#: share what they learn.
CostModelsMaker: TypeAlias = Callable[[Sequence[Task], np.random.Generator], Sequence[CostModel]]

COST_MODELS: Final[Mapping[str, CostModelsMaker]] = {
    "own": lambda tasks, _: [BlendedModel(Draft(task.target), GBDT()) for task in tasks],
    "gbdt": lambda tasks, _: [GBDT() for _ in tasks],
    "random": lambda tasks, rng: [RandomModel(each) for each in rng.spawn(len(tasks))],
}


def cost_models(maker: CostModelsMaker, tasks: Sequence[Task], rng: np.random.Generator) -> tuple[CostModel, ...]:
    """What ``maker`` makes: a model for each of ``tasks``.

    Raises:
        ArgumentError: it makes too few or too many, or something else.
    """
    models = maker(tasks, rng)
    if not isinstance(models, Sequence) or len(models) != len(tasks):
        raise ArgumentError(
            f"the cost model's maker gave {models!r} for {len(tasks)} tasks; it must give a list, one model a task"
        )
    for model in models:
        if not all(callable(getattr(model, method, None)) for method in ("fit", "predict")):
            raise ArgumentError(f"the cost model {model!r} has no fit(groups) or no predict(features); it needs both")
    return tuple(models)
