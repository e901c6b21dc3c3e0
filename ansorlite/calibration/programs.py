"""Programs to hold the analytical cost model against: drawn, compiled, and timed on one thread by processor time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ansorlite.calibration.fit import Sample, padded
from ansorlite.codegen.object import Compiled
from ansorlite.cost_model.draft import Draft
from ansorlite.evolution import EvolutionSettings, evolve, first_of_each, keys
from ansorlite.features import extract
from ansorlite.loops.arguments import argument
from ansorlite.measure.inputs import make_inputs
from ansorlite.programs.build import build_candidate
from ansorlite.runtime.arguments import empty
from ansorlite.runtime.kernel import Kernel
from ansorlite.runtime.timing import calls_for
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task

#: A short search of each sketch under the model.
_SEARCH: Final = EvolutionSettings(population=512, generations=3, keep=64)
#: Seconds of one turn of one program. Each has a few turns, as others may use the memory for longer than it takes to repeat one;
#: then there are turns until the two least times of each differ by no more than a share of the least, as many as the most, or as
#: fill the seconds.
_TURN: Final = 0.001
_FEW: Final = 6
_AGREE: Final = 0.02
_MOST: Final = 20
_SECONDS: Final = 5.0
#: A program whose first call takes so many times as long as the fastest one's has no turns.
_HOPELESS: Final = 6.0


@dataclass(frozen=True)
class Timed:
    """Programs of one task.

    Attributes:
        seconds: the least of a call of each.
        second: the second least, over turns; infinite where there was none.
        searched: whether a search under the model found it.
    """

    task: Task
    candidates: tuple[Candidate, ...]
    seconds: tuple[float, ...]
    second: tuple[float, ...]
    searched: tuple[bool, ...]

    def sample(self) -> Sample:
        """With the features of each."""
        found = [extract(sketch_of(self.task, each), np.zeros((1, 0), np.int64)) for each in self.candidates]
        return Sample(padded(found), np.array(self.seconds))


@dataclass(frozen=True)
class Drawn:
    """Programs of one task that are to be timed: each with its code, and whether a search under the model found it."""

    task: Task
    candidates: tuple[Candidate, ...]
    objects: tuple[Compiled, ...]
    searched: tuple[bool, ...]

    def timed(self, rng: np.random.Generator) -> Timed:
        """Run them, on inputs that are drawn."""
        dag = self.task.dag
        params = [argument(t) for t in (*dag.inputs, *dag.outputs)]
        kernels = [Kernel(each, params, self.task.target) for each in self.objects]
        arrays = [*make_inputs(dag, rng), *(empty(t.shape, t.dtype) for t in dag.outputs)]
        seconds, second = zip(*least_seconds([kernel.bind(*arrays) for kernel in kernels]), strict=True)
        return Timed(self.task, self.candidates, seconds, second, self.searched)


def drawn(task: Task, uniform: int, searched: int, rng: np.random.Generator) -> Drawn:
    """Compile so many programs of ``task`` drawn uniformly, and so many that a search under the model finds."""
    sketches = derive(task)
    rows = _uniform(sketches, uniform, rng)
    found = [each for each in _searched(sketches, searched, rng) if each not in set(rows)]
    objects = tuple(build_candidate(task, each) for each in (*rows, *found))
    return Drawn(task, (*rows, *found), objects, (*(False for _ in rows), *(True for _ in found)))


def least_seconds(runs: Sequence[Callable[[], None]]) -> list[tuple[float, float]]:
    """Of each the least and the second least processor time of one call, over turns."""
    # The first call finds the caches and the memory of others: it and the next tell how many calls make a turn.
    first = [min(_taken(run, 1), _taken(run, 1)) for run in runs]
    limit = _HOPELESS * min(first)
    times = [(math.inf, math.inf) for _ in runs]
    begin = time.monotonic()
    for turn in range(_MOST):
        for position, (run, once) in enumerate(zip(runs, first, strict=True)):
            least, second = times[position]
            if once <= limit and (turn < _FEW or not second <= (1 + _AGREE) * least):
                calls = calls_for(min(least, once), _TURN)
                least, second, _ = sorted((least, second, _taken(run, calls)))
                times[position] = least, second
        if time.monotonic() - begin > _SECONDS:
            break
    return [(min(least, once), second) for (least, second), once in zip(times, first, strict=True)]


def _taken(run: Callable[[], None], calls: int) -> float:
    start = time.thread_time()
    for _ in range(calls):
        run()
    return (time.thread_time() - start) / calls


def _uniform(sketches: Sequence[Sketch], count: int, rng: np.random.Generator) -> list[Candidate]:
    share = -(-count // len(sketches))
    found = []
    for sketch in sketches:
        space = TileSpace(sketch)
        rows = space.sample(4 * share, rng)
        rows = rows[first_of_each(keys(space, rows), set())][:share]
        found += [sketch.candidate(row) for row in rows]
    return [found[i] for i in sorted(rng.permutation(len(found))[:count])]


def _searched(sketches: Sequence[Sketch], count: int, rng: np.random.Generator) -> list[Candidate]:
    """The best of all sketches, and with falling frequency what comes after them."""
    found: list[tuple[float, Candidate]] = []
    for sketch in sketches:
        draft, none = Draft(sketch.target), np.zeros((0, len(sketch.holes)), np.int64)
        rows, scores = evolve(TileSpace(sketch), lambda rows, s=sketch, d=draft: d(extract(s, rows)), none, _SEARCH, rng)  # type: ignore[misc]
        found += [(float(score), sketch.candidate(row)) for row, score in zip(rows, scores, strict=True)]
    found.sort(key=lambda each: -each[0])
    places = np.unique(np.geomspace(1, len(found), min(4 * count, len(found))).astype(int) - 1)
    chosen = sorted(rng.permutation(places)[:count]) if len(places) > count else places
    return [found[i][1] for i in chosen]
