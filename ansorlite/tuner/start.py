"""From a task to everything that tuning it needs: its sketches, their spaces, a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.cost_model.protocol import Prior
from ansorlite.features.programs import ProgramSpace
from ansorlite.platforms.table import platform_of
from ansorlite.records.database import Database
from ansorlite.search import SearchProblem, StrategyMaker
from ansorlite.search.default import default_candidate, default_candidates
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces.builders import Derived, SpaceBuilder, sketches_of
from ansorlite.task import Task
from ansorlite.tuner.keys import ProgramKeys
from ansorlite.tuner.state import TaskState
from ansorlite.tuner.transfer import transplanted


def task_state(
    task: Task,
    uses: tuple[int, ...],
    strategy: StrategyMaker,
    model: CostModel,
    rng: np.random.Generator,
    space: SpaceBuilder | None = None,
    draft: bool = True,
    experience: Database | None = None,
) -> TaskState:
    """``task`` before its first trial.

    Args:
        uses: how often each model runs it.
        strategy: what makes the strategy of its sketches.
        model: what the strategy may ask.
        space: what makes the sketches; by default the derivation rules of the target.
        draft: whether its default program is the first to be measured.
        experience: records of other tasks, whose programs are measured next, as far as they fit.
    """
    sketches = sketches_of(task, space or Derived())
    spaces = tuple(map(ProgramSpace, sketches))
    prior = platform_of(task.target).prior(task.target)
    problem = SearchProblem(spaces, prior)
    default = (default_candidate(task, sketches),) if draft else ()
    known = () if experience is None else transplanted(task, sketches, experience, space)
    return TaskState(
        task=task,
        uses=uses,
        strategy=strategy(problem, model, rng),
        keys=ProgramKeys(task, problem),
        first=tuple(dict.fromkeys([*default, *known])),
        spaces=spaces,
        naive_estimate=partial(_naive_estimate, task, prior),
        spare=partial(_other_defaults, task, sketches),
    )


def _other_defaults(task: Task, sketches: Sequence[Sketch]) -> list[Candidate]:
    return [each for each in default_candidates(task, sketches) if each != NAIVE]


def _naive_estimate(task: Task, prior: Prior) -> float:
    (estimate,) = np.exp(-prior(ProgramSpace(sketch_of(task, NAIVE)).programs(np.zeros((1, 0), np.int64)).features))
    return float(estimate)
