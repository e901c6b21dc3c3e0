"""From a task to everything that tuning it needs: its sketches, their spaces, a cost model, a strategy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorlite.cost_model import GBDT, BlendedModel
from ansorlite.features import extract
from ansorlite.platforms.table import platform_of
from ansorlite.search import SearchProblem, StrategyMaker
from ansorlite.sketch.default import default_candidate
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.state import Rule
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.task import Task
from ansorlite.tuner.keys import ProgramKeys
from ansorlite.tuner.state import TaskState


def task_state(
    task: Task, uses: tuple[int, ...], strategy: StrategyMaker, rng: np.random.Generator, rules: Sequence[Rule] | None = None
) -> TaskState:
    """``task`` before its first trial. Its default program is the first to be measured.

    Args:
        uses: how often each model runs it.
        strategy: what makes the strategy of its sketches.
        rules: the derivation rules; by default those of the target.
    """
    sketches = derive(task, rules)
    signatures = tuple(sketch.signature for sketch in sketches)
    spaces = tuple(TileSpace(sketch) for sketch in sketches)
    problem = SearchProblem(signatures, spaces, lambda position, rows: extract(sketches[position], rows))
    model = BlendedModel(platform_of(task.target).prior(task.target), GBDT())
    return TaskState(
        task=task,
        uses=uses,
        strategy=strategy(problem, model, rng),
        keys=ProgramKeys(dict(zip(signatures, spaces, strict=True))),
        first=(default_candidate(task, sketches),),
    )
