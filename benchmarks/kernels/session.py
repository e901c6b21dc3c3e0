"""One case: tune it, hold every output against the others, time all in turns."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.cache.disk import NoCache
from ansorlite.loops.nodes import Scope
from ansorlite.measure.check import Checker, tolerance
from ansorlite.measure.inputs import make_inputs
from ansorlite.runtime.arguments import empty
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import host
from ansorlite.tuner.result import Trial, TuneResult
from benchmarks.common.rounds import quietest_rounds
from benchmarks.common.spread import Spread, ratio
from benchmarks.kernels.operators.operator import Array
from benchmarks.kernels.peak import peak
from benchmarks.kernels.peers import PEERS, Contender
from benchmarks.kernels.results import BARE, CALLED, UNTUNED, Point, Run, Timing, Tuning, Variance
from benchmarks.kernels.suites import Case

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How a case is run.

    Attributes:
        run: threads, trials and seed; with 0 trials the default program is what is timed.
        against: names of :data:`PEERS`.
        untuned: whether the program without any trials takes part.
        seconds: how long a comparison lasts.
        time_limit: seconds of tuning, at most.
        records: a folder for what other tuners measure; ``None``: they keep nothing.
    """

    run: Run
    against: tuple[str, ...]
    untuned: bool
    seconds: float
    time_limit: float | None
    records: Path | None = None


def tune(suite: str, case: Case, settings: Settings, database: al.Database) -> Tuning:
    """Tune ``case`` until the database holds so many trials of it."""
    task = al.Task(case.operator.tensors(), host(settings.run.threads))
    result = _tuned(task, settings, settings.run.seed, database)
    return Tuning(
        suite,
        case.name,
        settings.run.threads,
        result.trials,
        settings.run.seed,
        result.restored,
        sum(part.errors for part in result.tasks),
        result.seconds,
        dict(result.phases),
        _curve(result.history),
        time.time(),
        settings.run.trials,
    )


def compare(suite: str, case: Case, settings: Settings, database: al.Database | None) -> Timing:
    """Time the best program that the database knows of ``case`` beside the peers."""
    task = al.Task(case.operator.tensors(), host(settings.run.threads))
    arrays = make_inputs(task.dag, np.random.default_rng(settings.run.seed))
    kernel = al.compile(task, database)
    contenders = _ours(kernel, arrays)
    compile_seconds = None
    if settings.untuned:
        start = time.perf_counter()
        untuned = Programs(None, cache=NoCache()).kernel(task)  # as al.compile(task) for who never compiled it
        compile_seconds = time.perf_counter() - start
        contenders[UNTUNED] = _ours(untuned, arrays)[BARE]
    for name in settings.against:
        contenders |= PEERS[name].contenders(case.operator, arrays, settings.run, settings.records)
    wrong = _wrong(task, case, arrays, contenders)
    best = peak(task.target)
    calls = [*(contender.call for contender in contenders.values()), best]
    rounds = quietest_rounds(calls, settings.seconds, settings.run.threads)
    *times, best_times = rounds.times
    taken = dict(zip(contenders, times, strict=True))
    others = [name for name in taken if name not in (CALLED, BARE)]
    return Timing(
        suite,
        case.name,
        settings.run.threads,
        settings.run.trials,
        settings.run.seed,
        task.dag.flops,
        sum(array.nbytes for array in arrays) + sum(output.nbytes for output in kernel.outputs),
        arrays[0].dtype.name,
        {name: float(np.median(medians)) for name, medians in taken.items()},
        {name: ratio(taken[name], taken[CALLED]) for name in others},
        {name: ratio(taken[name], taken[BARE]) for name in others},
        Spread.of([task.dag.flops / mine / (best.flops / other) for mine, other in zip(taken[BARE], best_times, strict=True)]),
        compile_seconds,
        kernel.origin is not None and kernel.origin.latency is not None,
        wrong,
        rounds.busy,
        time.time(),
    )


def vary(suite: str, case: Case, settings: Settings, seeds: Sequence[int]) -> Variance:
    """Tune ``case`` anew with each seed, and time the programs found beside each other, and the first beside its like."""
    task = al.Task(case.operator.tensors(), host(settings.run.threads))
    arrays = make_inputs(task.dag, np.random.default_rng(settings.run.seed))
    kernels = []
    for seed in seeds:
        with al.Database(":memory:") as database:
            _tuned(task, settings, seed, database)
            kernels.append(al.compile(task, database))
    calls = [_ours(kernel, arrays)[BARE].call for kernel in (*kernels, *[kernels[0]] * len(kernels))]
    taken = np.array(quietest_rounds(calls, settings.seconds, settings.run.threads).times)
    found, alike = taken[: len(kernels)], taken[len(kernels) :]
    run, medians = settings.run, tuple(map(float, np.median(found, axis=1)))
    return Variance(suite, case.name, run.threads, run.trials, medians, _worst(found), _worst(alike), time.time())


def _worst(taken: NDArray[np.float64]) -> float:
    """(programs, rounds) seconds: how fast the slowest program is, as a share of the fastest, in the median round."""
    medians = np.median(taken, axis=1)
    return float(np.median(taken[np.argmin(medians)] / taken[np.argmax(medians)]))


def _tuned(task: al.Task, settings: Settings, seed: int, database: al.Database) -> TuneResult:
    return al.tune(task, trials=settings.run.trials, database=database, seed=seed, progress=False, time_limit=settings.time_limit)


def _curve(history: Sequence[Trial]) -> tuple[Point, ...]:
    best = math.inf
    curve = []
    for number, trial in enumerate(history, 1):
        if not trial.restored and trial.latency is not None and trial.latency < best:
            best = trial.latency
            curve.append(Point(trial.at, number, best))
    return tuple(curve)


def _ours(kernel: Kernel, arrays: Sequence[Array]) -> dict[str, Contender]:
    constants = {b.name: x for b, x in zip(kernel.inputs, arrays, strict=True) if b.scope is Scope.CONSTANT}
    others = [x for b, x in zip(kernel.inputs, arrays, strict=True) if b.name not in constants]
    prepared = kernel.prepare(**constants) if constants else kernel
    out = empty(kernel.outputs[0].shape, kernel.outputs[0].dtype)
    run = prepared.bind(*others, out)
    return {
        CALLED: Contender(lambda: prepared(*others), np.asarray),
        BARE: Contender(run, lambda _: out),
    }


def _wrong(task: al.Task, case: Case, arrays: Sequence[Array], contenders: Mapping[str, Contender]) -> dict[str, str]:
    """What is wrong with whose output, against numpy's."""
    checker = Checker([task.dag.outputs[0].name], [case.operator.numpy(*arrays)], tolerance(task.dag))
    said = {name: checker.compare([contender.output(contender.call())]) for name, contender in contenders.items()}
    for name, what in said.items():
        if what:
            _log.warning("%s: the output of %s differs from numpy's: %s", case.name, name, what)
    return {name: what for name, what in said.items() if what}
