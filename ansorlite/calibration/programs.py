"""Programs to hold the analytical cost model against: drawn, compiled, and timed on one thread by processor time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.draft import Draft
from ansorlite.evolution import EvolutionSettings, evolve, first_of_each, keys
from ansorlite.features import extract
from ansorlite.loops.arguments import argument
from ansorlite.measure.inputs import empty, make_inputs
from ansorlite.runtime.build import build_candidate
from ansorlite.runtime.kernel import Kernel
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.task import Task

#: A short search of each sketch under the model.
_SEARCH: Final = EvolutionSettings(population=512, generations=3, keep=64)
#: Seconds of one turn of one program, how many turns each has, and how many more while its two least times differ by more than
#: a share of the least.
_TURN: Final = 0.002
_TURNS: Final = 4
_MORE: Final = 12
_AGREE: Final = 0.03
#: A program whose first call takes so many times as long as the fastest one's has no more turns.
_HOPELESS: Final = 8.0


@dataclass(frozen=True)
class Timed:
    """Programs of one task.

    Attributes:
        seconds: the least of a call of each.
        spread: how much more the second least turn of each took, as a share of the least; infinite where there was one turn.
        searched: whether a search under the model found it.
    """

    task: Task
    candidates: tuple[Candidate, ...]
    seconds: tuple[float, ...]
    spread: tuple[float, ...]
    searched: tuple[bool, ...]

    def features(self, sketches: Sequence[Sketch]) -> list[NDArray[np.float64]]:
        """(1, statements, features) of each."""
        by_name = {sketch.signature: sketch for sketch in sketches}
        return [extract(by_name[each.sketch], np.array([each.row], np.int64)) for each in self.candidates]


def timed(task: Task, uniform: int, searched: int, rng: np.random.Generator) -> Timed:
    """Time so many programs of ``task`` drawn uniformly, and so many that a search under the model finds."""
    sketches = derive(task)
    drawn = [(each, False) for each in _uniform(sketches, uniform, rng)]
    seen = {each for each, _ in drawn}
    drawn += [(each, True) for each in _searched(sketches, searched, rng) if each not in seen]
    params = [argument(t) for t in (*task.dag.inputs, *task.dag.outputs)]
    kernels = [Kernel(build_candidate(task, each, sketches), params, task.target) for each, _ in drawn]
    arrays = [*make_inputs(task.dag, rng), *(empty(t.shape, t.dtype) for t in task.dag.outputs)]
    seconds, spread = zip(*least_seconds([kernel.bind(*arrays) for kernel in kernels]), strict=True)
    return Timed(task, tuple(each for each, _ in drawn), seconds, spread, tuple(flag for _, flag in drawn))


def least_seconds(runs: Sequence[Callable[[], None]]) -> list[tuple[float, float]]:
    """Of each the least processor time of one call over turns, and by what share of it the second least is above it."""
    # The first call, which finds the caches and the memory of others, only tells how many calls make a turn.
    first = [_taken(run, 1) for run in runs]
    limit = _HOPELESS * min(first)
    times: list[list[float]] = [[] for _ in runs]
    for turn in range(_TURNS + _MORE):
        for run, seconds, once in zip(runs, times, first, strict=True):
            if once <= limit and (turn < _TURNS or _spread(seconds) > _AGREE):
                calls = max(1, round(_TURN / max(min(seconds, default=once), 1e-7)))
                seconds.append(_taken(run, calls))
    return [(min(seconds, default=once), _spread(seconds)) for seconds, once in zip(times, first, strict=True)]


def _spread(seconds: Sequence[float]) -> float:
    if len(seconds) < 2:
        return math.inf
    one, two = sorted(seconds)[:2]
    return two / one - 1


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
        found += [_candidate(sketch, row) for row in rows]
    return [found[i] for i in sorted(rng.permutation(len(found))[:count])]


def _searched(sketches: Sequence[Sketch], count: int, rng: np.random.Generator) -> list[Candidate]:
    """The best of all sketches, and with falling frequency what comes after them."""
    found: list[tuple[float, Candidate]] = []
    for sketch in sketches:
        draft, none = Draft(sketch.target), np.zeros((0, len(sketch.holes)), np.int64)
        rows, scores = evolve(TileSpace(sketch), lambda rows, s=sketch, d=draft: d(extract(s, rows)), none, _SEARCH, rng)  # type: ignore[misc]
        found += [(float(score), _candidate(sketch, row)) for row, score in zip(rows, scores, strict=True)]
    found.sort(key=lambda each: -each[0])
    places = np.unique(np.geomspace(1, len(found), min(4 * count, len(found))).astype(int) - 1)
    chosen = sorted(rng.permutation(places)[:count]) if len(places) > count else places
    return [found[i][1] for i in chosen]


def _candidate(sketch: Sketch, row: NDArray[np.int64]) -> Candidate:
    return Candidate(sketch.signature, tuple(int(value) for value in row))
