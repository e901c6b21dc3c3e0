"""One schedule for all sizes of a bucket: Paddle CINN's dynamic shapes (design note of 2025), and DietCode's (Zheng et al., MLSys
2022).

A computation with a dynamic dimension is a task for each of its sizes. Those of a bucket share what is tuned once, for the size
that comes most often: its best programs are moved to the other sizes, and the one that is best over all of them, by weight, is
the bucket's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ansorlite.api.checks import check_integer
from ansorlite.api.database import Given, opened
from ansorlite.api.replay import replay
from ansorlite.api.searcher import bucket
from ansorlite.api.tune import TRIALS, tune
from ansorlite.errors import ArgumentError, ScheduleError, TuningError
from ansorlite.module.fastest import arrays_for
from ansorlite.records.database import Database
from ansorlite.runtime.kernel import Kernel
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces.builders import Derived, sketches_of
from ansorlite.task import Task
from ansorlite.tuner.transfer import best_of, moved_to

#: Of a compiled program, seconds of a call.
Clock: TypeAlias = Callable[[Kernel], float]

#: So many of the best programs of the size that is tuned are tried at the others.
_CONSIDERED: Final = 4


@dataclass(frozen=True, eq=False)
class ShapeSet:
    """The sizes of a dynamic dimension.

    Attributes:
        tasks: the computation at each size.
        weights: how often each size comes; 1 where nothing is said.
    """

    tasks: Mapping[int, Task]
    weights: Mapping[int, float]

    def __init__(self, tasks: Mapping[int, Task], weights: Mapping[int, float] | None = None) -> None:
        """
        Raises:
            ArgumentError: no sizes; one below 0, or with something else than a task; a weight that is not above 0, or of no size.
        """
        given = dict(weights or {})
        for size, task in tasks.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 0 or not isinstance(task, Task):
                raise ArgumentError(
                    f"size {size!r} is of {type(task).__name__}; give an al.Task for each whole number, not below 0"
                )
        wrong = [size for size, weight in given.items() if size not in tasks or not 0 < weight < math.inf]
        if not tasks or wrong:
            raise ArgumentError(
                f"the weight of size {wrong[0]} is {given[wrong[0]]}; give sizes that there are, weights above 0"
                if wrong
                else "a set of shapes needs a size at least: {64: al.Task(...)}"
            )
        object.__setattr__(self, "tasks", dict(sorted(tasks.items())))
        object.__setattr__(self, "weights", {size: float(given.get(size, 1.0)) for size in self.tasks})

    @property
    def buckets(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """The sizes of each bucket that has some, by its first size and the first beyond it."""
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        for size in self.tasks:
            found[bucket(size)] = (*found.get(bucket(size), ()), size)
        return found


@dataclass(frozen=True)
class BucketProgram:
    """What a bucket got.

    Attributes:
        tuned: the size that was tuned.
        traces: the bucket's schedule, at each of its sizes.
        seconds: of a call, at each.
    """

    tuned: int
    traces: Mapping[int, str]
    seconds: Mapping[int, float]

    def regret(self, own: Mapping[int, float]) -> float:
        """By which share it is slower than programs of each size's own, of ``own`` seconds, in the mean over sizes."""
        return sum(seconds / own[size] - 1.0 for size, seconds in self.seconds.items()) / len(self.seconds)


def tune_shapes(
    shapes: ShapeSet,
    *,
    trials: int = TRIALS,
    database: Given = None,
    preset: str = "default",
    seed: int = 0,
    clock: Clock | None = None,
) -> dict[tuple[int, int], BucketProgram]:
    """A schedule for each bucket. ``al.replay(task, trace)`` compiles what it is at a size.

    Args:
        trials: of each bucket, those in the database included.
        database: where measurements are kept, as in :func:`ansorlite.tune`.
        preset: which system to tune as.
        clock: what times a program at a size; by default on arrays of random numbers.

    Raises:
        ArgumentError: trials that are none, an unknown preset.
        RecordsError: the database cannot be used.
        TuningError: no program of the size that is tuned can be moved to the others.
    """
    check_integer("trials", trials, least=1)
    found = {}
    with opened(database) as records:
        for bounds, sizes in shapes.buckets.items():
            # The one that comes most often; of equal ones the largest, whose program leaves least undone.
            tuned = max(sizes, key=lambda size: (shapes.weights[size], size))
            tune(shapes.tasks[tuned], trials=trials, database=records, preset=preset, seed=seed, progress=False)
            found[bounds] = _shared(shapes, sizes, tuned, records, clock or _timed)
    return found


def _shared(shapes: ShapeSet, sizes: tuple[int, ...], tuned: int, records: Database, clock: Clock) -> BucketProgram:
    """Of the best programs of the tuned size the one that is best over all sizes."""
    sketches = {size: sketches_of(shapes.tasks[size], Derived()) for size in sizes}
    found: list[BucketProgram] = []
    for candidate in best_of(records, shapes.tasks[tuned], _CONSIDERED):
        own = {tuned: candidate.trace}
        traces = {size: own.get(size) or _moved(sketches[tuned], candidate, sketches[size]) for size in sizes}
        fitting = {size: trace for size, trace in traces.items() if trace is not None}
        if len(fitting) < len(sizes):
            continue
        try:
            seconds = {size: clock(replay(shapes.tasks[size], trace)) for size, trace in fitting.items()}
        except ScheduleError:
            continue
        found.append(BucketProgram(tuned, fitting, seconds))
    if not found:
        raise TuningError(
            f"no program of size {tuned} fits all sizes of its bucket, {', '.join(map(str, sizes))}; tune each by itself"
        )
    return min(found, key=lambda program: sum(shapes.weights[size] * each for size, each in program.seconds.items()))


def _moved(sources: Sequence[Sketch], candidate: Candidate, targets: Sequence[Sketch]) -> str | None:
    """A program of one size as that of another, by the sketches of both; ``None`` if there is none."""
    moved = (each.trace for sketch in sources for each in moved_to(sketch, candidate, targets))
    return next(moved, None)


def _timed(kernel: Kernel) -> float:
    return kernel.benchmark(*arrays_for(kernel.inputs, 0)).median
