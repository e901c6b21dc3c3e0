"""From a task to everything that tuning it needs: its sketches, their spaces, a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Final

import numpy as np

from ansorlite.best.defaults import Defaults
from ansorlite.cost_model import CostModel
from ansorlite.cost_model.protocol import Prior
from ansorlite.features.programs import ProgramSpace
from ansorlite.measure.measurer import Measurer
from ansorlite.platforms.table import platform_of
from ansorlite.records.database import Database
from ansorlite.search import SearchProblem, StrategyMaker
from ansorlite.search.default import default_candidates
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.task import Task
from ansorlite.tuner.keys import ProgramKeys
from ansorlite.tuner.state import TaskState
from ansorlite.tuner.transfer import transplanted

#: The default programs of fewer tasks are chosen here sooner than processes have started that do it.
_MANY: Final = 6


def task_state(
    task: Task,
    uses: tuple[int, ...],
    strategy: StrategyMaker,
    model: CostModel,
    rng: np.random.Generator,
    defaults: Defaults,
    draft: bool = True,
    experience: Database | None = None,
) -> TaskState:
    """``task`` before its first trial.

    Args:
        uses: how often each model runs it.
        strategy: what makes the strategy of its sketches.
        model: what the strategy may ask.
        defaults: the default programs of its space.
        draft: whether its default program is the first to be measured.
        experience: records of other tasks, whose programs are measured next, as far as they fit.
    """
    sketches = defaults.sketches(task)
    spaces = tuple(map(ProgramSpace, sketches))
    prior = platform_of(task.target).prior(task.target)
    problem = SearchProblem(spaces, prior)
    default = (defaults.of(task),) if draft else ()
    known = () if experience is None else transplanted(task, sketches, experience, defaults.space)
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


def build_ahead(defaults: Defaults, tasks: Sequence[Task], measurer: Measurer, late: Callable[[], bool]) -> None:
    """Have the default programs of ``tasks`` chosen and compiled side by side, if there are many; ``defaults`` keeps them.

    Args:
        late: tells when to leave the rest.
    """
    if len(tasks) < _MANY:
        return
    with closing(measurer.build_ahead([(task, defaults.known(task)) for task in tasks])) as built:
        for task, default in built:
            defaults.remember(task, default)
            if late():
                break


def _other_defaults(task: Task, sketches: Sequence[Sketch]) -> list[Candidate]:
    return [each for each in default_candidates(task, sketches) if each != NAIVE]


def _naive_estimate(task: Task, prior: Prior) -> float:
    (estimate,) = np.exp(-prior(ProgramSpace(sketch_of(task, NAIVE)).programs(np.zeros((1, 0), np.int64)).features))
    return float(estimate)
