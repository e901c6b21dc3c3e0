"""The verbs: :func:`from_onnx`, :func:`tune`, :func:`compile`. The same ones for a task, several tasks, and a model."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias, overload

import numpy as np

from ansorlite.best import Programs
from ansorlite.errors import ArgumentError
from ansorlite.frontends.onnx import Source, load_any
from ansorlite.graph.executable import Executable
from ansorlite.graph.hybrid import AnyModel, HybridExecutable, HybridModel, compile_any
from ansorlite.graph.model import Model
from ansorlite.graph.open_executable import KEEP, OpenExecutable
from ansorlite.graph.open_model import Dim, OpenModel, Sizes
from ansorlite.measure.measurer import Measurer
from ansorlite.measure.rules import rules_from
from ansorlite.measure.settings import MeasureSettings
from ansorlite.records.database import Database
from ansorlite.report.progress import listener
from ansorlite.runtime.kernel import Kernel
from ansorlite.search import STRATEGIES
from ansorlite.sketch.state import Rule
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.task_scheduler import Goal, GradientScheduler, GradientSettings, describe, objective_of
from ansorlite.tuner.loop import Tuner
from ansorlite.tuner.result import TuneResult
from ansorlite.tuner.start import task_state
from ansorlite.tuner.workload import Workload, parts_of, tasks_of

_log = logging.getLogger(__name__)

#: Trials for each task where the caller does not say.
TRIALS = 64

Path_: TypeAlias = str | os.PathLike[str]


def from_onnx(
    model: Source,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    target: str | Target = "llvm",
    *,
    dims: Mapping[str, Sizes] | None = None,
) -> AnyModel | OpenModel:
    """Load an ONNX model. Operators that are no tensor expression run in Python; the model's ``fallbacks`` name them.

    What the file leaves open stays open, if neither ``shapes`` nor ``dims`` fixes it; so does what depends on the values of
    inputs. Such a model is compiled for the sizes and values that it is called with: see
    :class:`ansorlite.graph.open_model.OpenModel`.

    Args:
        model: the path of a file, its bytes, or an ``onnx.ModelProto``.
        shapes: shapes for inputs, by name; a name instead of an extent leaves that open.
        dims: open dimension → its size; or several sizes, which programs are made for, each to serve the smaller ones, too. By
            default those are powers of two.

    Raises:
        ModelError: the file is not there or malformed, a shape is wrong, or nothing knows an operator (told when that is needed
            first: at once, if nothing is open).
        ArgumentError: ``dims`` names no open dimension, or gives sizes that are not positive integers.
        TargetError: an unknown target.
    """
    return load_any(model, shapes, dims, target)


def tune(
    workload: Workload,
    *,
    trials: int | None = None,
    database: Path_ | Database | None = None,
    strategy: str = "evolutionary",
    seed: int = 0,
    progress: bool | None = None,
    time_limit: float | None = None,
    rules: str | None = None,
    objective: str = "latency",
    goals: Sequence[Goal] | None = None,
    stop_below: float = 0.0,
) -> TuneResult:
    """Find fast programs by measuring on this machine.

    What the database knows already counts as done: calling this again with the same arguments goes on where the last call
    stopped, and returns at once when nothing is left to do. Ctrl-C ends it early with all that was found.

    Args:
        workload: a task, a model, or several of them: a task that several use is tuned once, and counts for each.
        trials: measurements in all, over all tasks, those in the database included; by default 64 for each task.
        database: where measurements are kept: a path, or an open database. ``None`` keeps them in memory only.
        strategy: how to search: a key of ``ansorlite.search.STRATEGIES``.
        seed: of every random draw.
        progress: whether to show progress on stderr; ``None`` shows it on a terminal only.
        time_limit: seconds after which to stop, whatever the trials.
        rules: derivation rules of your own: ``"file.py:NAME"`` or ``"package.module:NAME"`` of a sequence of them.
        objective: what is to be lowered over several models: a key of ``ansorlite.task_scheduler.OBJECTIVES``: ``"latency"``, the
            sum; ``"bounds"``, the sum, but nothing more for a model below its bound; ``"geomean"``, that of latencies.
        goals: weight, bound and reference of each model, in order.
        stop_below: a task gets no more trials once the next round of it is expected to lower the objective by less than this
            share of itself; tuning ends when that is so for every task. It goes on, from records, with a lower one.

    Raises:
        ArgumentError: no task, an unknown strategy or objective, goals that do not fit, or a limit that is not positive.
        RecordsError: the database cannot be used.
        TuningError: no program runs at all, or there are no such rules.
    """
    parts = parts_of(workload)
    tasks = tasks_of(parts)
    goals = [Goal()] * len(parts) if goals is None else goals
    if len(goals) != len(parts):
        raise ArgumentError(f"{len(goals)} goals are given for {len(parts)} models; give one for each")
    if not 0 <= stop_below < 1:
        raise ArgumentError(f"stop_below is {stop_below}; it must be a share from 0 up to 1: 0.001 is a tenth of a percent")
    if strategy not in STRATEGIES:
        raise ArgumentError(f"unknown strategy {strategy!r}; the strategies are: {', '.join(STRATEGIES)}")
    for name, limit in (("trials", trials), ("time_limit", time_limit)):
        if limit is not None and not limit > 0:
            raise ArgumentError(f"{name} is {limit}; it must be greater than 0")
    streams = np.random.default_rng(seed).spawn(len(tasks))
    own = None if rules is None else rules_from(rules)
    states = [task_state(task, uses, strategy, rng, own) for (task, uses), rng in zip(tasks, streams, strict=True)]
    with ExitStack() as stack:
        tuner = Tuner(
            states,
            trials=TRIALS * len(tasks) if trials is None else trials,
            time_limit=time_limit,
            database=_opened(database, stack),
            scheduler=GradientScheduler(
                [describe(task, uses) for task, uses in tasks],
                objective_of(objective, goals),
                GradientSettings(stop_below=stop_below),
            ),
            open_measurer=lambda: Measurer(tasks[0][0].target, MeasureSettings(seed=seed, rules=rules)),
            listener=stack.enter_context(listener(progress)),
        )
        return tuner.run()


@overload
def compile(workload: Task, database: Path_ | Database | None = None, *, rules: str | None = None) -> Kernel: ...
@overload
def compile(workload: Model, database: Path_ | Database | None = None, *, rules: str | None = None) -> Executable: ...
@overload
def compile(workload: HybridModel, database: Path_ | Database | None = None, *, rules: str | None = None) -> HybridExecutable: ...
@overload
def compile(
    workload: OpenModel, database: Path_ | Database | None = None, *, rules: str | None = None, keep: int | None = None
) -> OpenExecutable: ...
@overload
def compile(
    workload: AnyModel | OpenModel, database: Path_ | Database | None = None, *, rules: str | None = None
) -> Executable | HybridExecutable | OpenExecutable: ...
def compile(
    workload: Task | AnyModel | OpenModel,
    database: Path_ | Database | None = None,
    *,
    rules: str | None = None,
    keep: int | None = None,
) -> Kernel | Executable | HybridExecutable | OpenExecutable:
    """Make a callable of the best programs known. Programs of an open model are made when it is called.

    Args:
        database: of measurements; without one, or where it knows no program of a task, a good default is taken, at once.
        rules: the derivation rules that were given to :func:`tune`, if any were.
        keep: of an open model, how many programs to keep, each with its own copy of the weights; by default 16.

    Raises:
        ArgumentError: ``keep`` is less than 1, or the model is not open.
        RecordsError: the database cannot be used.
        TuningError: there are no such rules.
    """
    if keep is not None and (keep < 1 or not isinstance(workload, OpenModel)):
        raise ArgumentError(f"keep is {keep}; it is for models with open dimensions, and at least 1")
    own = None if rules is None else rules_from(rules)
    if isinstance(database, str | os.PathLike) and not Path(database).exists():
        _log.warning("there is no tuning database at %s: compiling default programs", os.fspath(database))
        database = None
    if isinstance(workload, OpenModel):
        # Opened anew for each program: other threads may make them, when the caller has closed it.
        place = database.path if isinstance(database, Database) and database.path.exists() else database
        return OpenExecutable(workload, lambda model: _compiled_model(model, place, own), keep=KEEP if keep is None else keep)
    if isinstance(workload, Task):
        return _compiled_task(workload, database, own)
    return _compiled_model(workload, database, own)


def _compiled_task(task: Task, database: Path_ | Database | None, rules: Sequence[Rule] | None) -> Kernel:
    with _programs(database, rules) as programs:
        return programs.kernel(task)


def _compiled_model(
    model: AnyModel, database: Path_ | Database | None, rules: Sequence[Rule] | None
) -> Executable | HybridExecutable:
    with _programs(database, rules) as programs:
        programs.prepare([task for task, _ in model.tasks])
        return compile_any(model, programs.kernel)


@contextmanager
def _programs(database: Path_ | Database | None, rules: Sequence[Rule] | None) -> Iterator[Programs]:
    with ExitStack() as stack:
        programs = Programs(None if database is None else _opened(database, stack), rules)
        yield programs
        programs.warn()


def _opened(database: Path_ | Database | None, stack: ExitStack) -> Database:
    if isinstance(database, Database):
        return database
    return stack.enter_context(Database(":memory:" if database is None else database))
