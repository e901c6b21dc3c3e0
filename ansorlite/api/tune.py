"""The verb :func:`tune`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

import numpy as np

from ansorlite.api import makers
from ansorlite.api.checks import check_integer, check_positive, check_share
from ansorlite.api.database import Given, opened
from ansorlite.api.space import Space, space_of
from ansorlite.best.defaults import Defaults
from ansorlite.cache.disk import default_cache
from ansorlite.calibration.automatic import calibrated, wanted
from ansorlite.errors import ArgumentError
from ansorlite.measure.measurer import Measurer
from ansorlite.measure.settings import MeasureSettings
from ansorlite.records.database import Database
from ansorlite.report.progress import listener
from ansorlite.search import StrategyMaker
from ansorlite.task import Task
from ansorlite.task_scheduler import Goal, SchedulerMaker, describe, objective_of
from ansorlite.tuner.clock import PhaseClock
from ansorlite.tuner.cost_models import CostModelsMaker
from ansorlite.tuner.events import Calibrating
from ansorlite.tuner.loop import Measures, Tuner
from ansorlite.tuner.measurers import Elsewhere, MeasurerMaker
from ansorlite.tuner.presets import DEFAULT
from ansorlite.tuner.result import TuneResult
from ansorlite.tuner.start import build_ahead, task_state
from ansorlite.tuner.workload import Workload, parts_of, tasks_of

#: Trials for each task where the caller does not say.
TRIALS = 64


def tune(
    workload: Workload,
    *,
    trials: int | None = None,
    database: Given = None,
    preset: str = DEFAULT,
    strategy: str | StrategyMaker | None = None,
    seed: int = 0,
    progress: bool | None = None,
    time_limit: float | None = None,
    space: Space | None = None,
    objective: str = "latency",
    goals: Sequence[Goal] | None = None,
    stop_below: float = 0.0,
    scheduler: str | SchedulerMaker | None = None,
    cost_model: str | CostModelsMaker | None = None,
    measurer: str | MeasurerMaker = "local",
) -> TuneResult:
    """Find fast programs by measuring on this machine.

    What the database knows already counts as done: calling this again with the same arguments goes on where the last call
    stopped, and returns at once when nothing is left to do. Ctrl-C ends it early with all that was found. On a processor of which
    nothing is known, a tuning of 64 trials or more begins with measuring it, once, as ``ansorlite calibrate`` does.

    ``strategy``, ``scheduler``, ``cost_model`` and ``measurer`` each take a key of the table that is named below; a function of
    your own that makes one, as those in the table do; or ``"file.py:NAME"`` or ``"package.module:NAME"`` of such a function.

    Args:
        workload: a task, a model, a module, or several of them: a task that several use is tuned once, and counts for each.
        trials: measurements in all, over all tasks, those in the database included; by default 64 for each task.
        database: where measurements are kept: a path, or an open database. ``None`` keeps them in memory only.
        preset: which system to tune as: ``ansorlite.tuner.presets.PRESETS``. It has a strategy, a scheduler and a cost model,
            which are taken where none is given.
        strategy: how to search: ``ansorlite.search.STRATEGIES``.
        seed: of every random draw.
        progress: whether to show progress on stderr; ``None`` shows it on a terminal only.
        time_limit: seconds after which to stop, whatever the trials; calibrating does not count.
        space: the programs to search: a function that schedules (of an ``al.Schedule``), several of them, an object whose
            ``spaces(task)`` gives sketches, derivation rules, or ``"file.py:NAME"`` of one of these. By default that of the
            preset, which most derive.
        objective: what is to be lowered over several models: a key of ``ansorlite.task_scheduler.OBJECTIVES``: ``"latency"``, the
            sum; ``"bounds"``, the sum, but nothing more for a model below its bound; ``"geomean"``, that of latencies.
        goals: weight, bound and reference of each model, in order.
        stop_below: a task gets no more trials once the next round of it is expected to lower the objective by less than this
            share of itself; tuning ends when that is so for every task. It goes on, from records, with a lower one.
        scheduler: which task of several gets the next trials: ``ansorlite.task_scheduler.SCHEDULERS``.
        cost_model: what tells fast programs from slow ones: ``ansorlite.tuner.cost_models.COST_MODELS``.
        measurer: what times programs: ``ansorlite.tuner.measurers.MEASURERS``; or the address of machines that do:
            ``"ssh://pi@board"`` (docs/clusters.md). What those tell is kept with their names; what one of
            your own tells is kept as measured on this machine.

    Raises:
        ArgumentError: no task, an unknown preset or objective, goals that do not fit, a limit that is not positive, a number that
            is none; a space, strategy, scheduler, cost model or measurer, that are not there, or are not what they should be.
        ScheduleError: a function of the space does not make a schedule.
        RecordsError: the database cannot be used.
        TuningError: no program runs at all.
    """
    if trials is not None:
        check_integer("trials", trials, least=1)
    if time_limit is not None:
        check_positive("time_limit", time_limit)
    check_integer("seed", seed, least=0)
    check_share("stop_below", stop_below)
    parts = parts_of(workload)
    tasks = tasks_of(parts)
    goals = [Goal()] * len(parts) if goals is None else goals
    if not isinstance(goals, Sequence) or not all(isinstance(goal, Goal) for goal in goals):
        raise ArgumentError(f"goals is {goals!r}; give an al.Goal(...) for each model, in a list")
    if len(goals) != len(parts):
        raise ArgumentError(f"{len(goals)} goals are given for {len(parts)} models; give one for each")
    if not isinstance(objective, str):
        raise ArgumentError(f'objective is {objective!r}; it must be the name of one: "latency", "bounds" or "geomean"')
    system = makers.preset(preset)
    searching = makers.STRATEGY.chosen(system.strategy if strategy is None else strategy)
    schedule = makers.SCHEDULER.chosen(system.scheduler if scheduler is None else scheduler)
    modelling = makers.COST_MODEL.chosen(system.cost_model if cost_model is None else cost_model)
    measuring = makers.MEASURER.chosen(measurer)
    scheduling = makers.SCHEDULER.checked(
        schedule([describe(task, uses) for task, uses in tasks], objective_of(objective, goals), stop_below)
    )
    own = space_of(system.space or None if space is None else space)
    *streams, stream = np.random.default_rng(seed).spawn(len(tasks) + 1)
    with ExitStack() as stack:
        records = stack.enter_context(opened(database))  # before deriving sketches, which takes seconds
        listen = stack.enter_context(listener(progress))
        budget = TRIALS * len(tasks) if trials is None else trials
        elsewhere = isinstance(measuring, Elsewhere)
        if not elsewhere and wanted(tasks[0][0].target, budget, time_limit):
            listen(Calibrating(tasks[0][0].target.cpu))
            target = calibrated(tasks[0][0].target)
            tasks = tuple((Task(task.dag, target), uses) for task, uses in tasks)
        clock = PhaseClock()
        settings = MeasureSettings(seed=seed, timing=system.timing)
        early: Measures | None = None

        def opening() -> AbstractContextManager[Measures]:
            return makers.open_measurer(measuring, tasks[0][0].target, settings) if early is None else nullcontext(early)

        if own is None and not elsewhere and _some_left(records, tasks, budget):
            # Workers take a second to start: while sketches are derived. A space of one's own may turn out to be none, so nothing
            # is started for it yet; and other machines are taken when they are needed.
            early = stack.enter_context(opening())
        models = makers.cost_models(modelling, [task for task, _ in tasks], stream)
        with clock.search():
            defaults = Defaults(default_cache(), own)
            if system.draft and isinstance(early, Measurer):
                fresh = [task for task, _ in tasks if not records.outcomes(task.key, task.target.key)]
                build_ahead(defaults, fresh, early, lambda: clock.over(time_limit))
            experience = records if system.transfer else None
            states = []
            for (task, uses), model, rng in zip(tasks, models, streams, strict=True):
                # Where the time is up, nothing is measured: no program is chosen for that.
                draft = system.draft and not clock.over(time_limit)
                states.append(task_state(task, uses, searching, model, rng, defaults, draft, experience))
        for state in states:
            makers.STRATEGY.checked(state.strategy)
        tuner = Tuner(
            states,
            trials=budget,
            time_limit=time_limit,
            database=records,
            scheduler=scheduling,
            open_measurer=opening,
            listener=listen,
            elsewhere=elsewhere,
            round_size=system.round,
            clock=clock,
        )
        return tuner.run()


def _some_left(records: Database, tasks: Sequence[tuple[Task, tuple[int, ...]]], budget: int) -> bool:
    """Whether there are fewer records than trials, whatever the records are worth: then there is something to measure."""
    return sum(sum(records.outcomes(task.key, task.target.key).values()) for task, _ in tasks) < budget
