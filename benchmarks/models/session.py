"""One model: tune it, hold its outputs against onnxruntime's, time all in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.cache.disk import NoCache
from ansorlite.graph.hybrid import HybridModel, compile_any
from ansorlite.graph.model import Model
from ansorlite.report.peers import onnxruntime_session
from ansorlite.target import host
from ansorlite.tuner.result import TuneResult
from benchmarks.common.rounds import quietest_rounds
from benchmarks.common.spread import ratio
from benchmarks.models.example import Array, Example, Source
from benchmarks.models.peers import PEERS, Call
from benchmarks.models.results import FEW, NEARLY, OURS, UNTUNED, Run, Timing, Tuning

#: A model whose shapes are known.
Fixed: TypeAlias = Model | HybridModel


@dataclass(frozen=True)
class Settings:
    """How a model is run.

    Attributes:
        run: with 0 trials the default programs are what is timed.
        against: names of :data:`PEERS`.
        untuned: whether the programs without any trials take part.
        few: trials for each task of other programs that take part, tuned from nothing; 0: of none.
        seconds: how long a comparison lasts.
    """

    run: Run
    against: tuple[str, ...]
    untuned: bool
    few: int
    seconds: float


def example(source: Source, settings: Settings) -> Example:
    """The model and its inputs: always the same ones."""
    return source(np.random.default_rng(settings.run.seed))


def tune(name: str, example: Example, settings: Settings, database: al.Database) -> Tuning:
    """Tune the model until the database holds so many trials of each task, or for as long as there is time."""
    run = settings.run
    result = _tuned(_model(example, run), run.trials, run, database)
    return Tuning(name, run, result.trials, result.restored, result.seconds, nearly(result), time.time())


def nearly(result: TuneResult) -> float | None:
    """Seconds until the best programs of all tasks, by their uses, had :data:`NEARLY` of their final speed."""
    best: dict[int, float] = {}
    for trial in result.history if not result.restored else ():
        if trial.latency is None or trial.latency >= best.get(trial.task, math.inf):
            continue
        best[trial.task] = trial.latency
        known = math.fsum(task.weight * best.get(number, math.inf) for number, task in enumerate(result.tasks))
        if known * NEARLY <= result.best_latency < math.inf:
            return trial.at
    return None


def compare(name: str, example: Example, settings: Settings, database: al.Database | None) -> Timing:
    """Check and time the best programs that the database knows, beside the peers."""
    threads, precision = settings.run.threads, settings.run.precision
    start = time.perf_counter()
    model = _model(example, settings.run)
    untuned = _compiled_anew(model)
    compile_seconds = time.perf_counter() - start
    calls: dict[str, Call] = {OURS: _call(untuned if database is None else al.compile(model, database), example)}
    if settings.untuned and database is not None:
        calls[UNTUNED] = _call(untuned, example)
    if settings.few and database is not None:
        calls[FEW] = _call(_tuned_anew(model, settings), example)
    for peer in settings.against:
        call = PEERS[peer](example, threads, precision)
        if call is not None:
            calls[peer] = call
    # Its rewritten graphs of integers do not compute what the model says.
    expected = onnxruntime_session(example.data, threads, example.inputs, optimize=False)()
    differences = {who: relative_difference(call(), expected) for who, call in calls.items()}
    # One system or another does its work on a thread of its own even when it is to use one only.
    rounds = quietest_rounds(list(calls.values()), settings.seconds, threads, processor=time.process_time)
    taken = dict(zip(calls, rounds.times, strict=True))
    return Timing(
        name,
        settings.run,
        len(model.tasks),
        len(model.fallbacks) if isinstance(model, HybridModel) else 0,
        {who: float(np.median(medians)) for who, medians in taken.items()},
        {who: ratio(medians, taken[OURS]) for who, medians in taken.items() if who != OURS},
        compile_seconds,
        differences,
        rounds.busy,
        time.time(),
        settings.few if FEW in calls else 0,
    )


def relative_difference(found: Sequence[Array], expected: Sequence[Array]) -> float:
    """The largest of any element, relative to that element or to the output's root mean square, whichever is larger.

    Infinite where shapes or dtypes differ, or where anything is not finite that should be.
    """
    if [(array.shape, array.dtype) for array in found] != [(array.shape, array.dtype) for array in expected]:
        return np.inf
    return max(
        _difference(array.astype(np.float64), other.astype(np.float64)) for array, other in zip(found, expected, strict=True)
    )


def _difference(found: Array, expected: Array) -> float:
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return np.inf
    size = np.maximum(np.abs(expected), np.sqrt(np.mean(np.square(expected))))
    return float(np.max(np.abs(found - expected) / np.where(size > 0, size, 1.0), initial=0.0))


def _model(example: Example, run: Run) -> Fixed:
    model = al.from_onnx(onnx.load_from_string(example.data), target=host(run.threads), precision=run.precision)
    assert isinstance(model, Model | HybridModel)
    return model


def _tuned(model: Fixed, trials: int, run: Run, database: al.Database) -> TuneResult:
    """Of ``model``, with so many trials for each task."""
    total = trials * len(model.tasks)
    return al.tune(model, trials=total, database=database, seed=run.seed, progress=None, time_limit=run.time_limit)


def _tuned_anew(model: Fixed, settings: Settings) -> Any:
    """As :attr:`Settings.few` trials make it of nothing."""
    with al.Database(":memory:") as database:
        _tuned(model, settings.few, settings.run, database)
        return al.compile(model, database)


def _compiled_anew(model: Fixed) -> Any:
    """As ``al.compile(model)`` for who never compiled it."""
    programs = Programs(None, cache=NoCache())
    programs.prepare([task for task, _ in model.tasks])
    return compile_any(model, programs.kernel)


def _call(executable: Any, example: Example) -> Call:
    inputs = dict(example.inputs)
    return lambda: list(executable(inputs).values())
