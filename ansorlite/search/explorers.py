"""Explorers: who looks through a sketch's space for programs that a cost model likes.

An explorer lives as long as the search of a sketch does, so that it may go on from where it was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Set
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.evolution import EvolutionSettings, best_first, evolve, first_of_each, keys
from ansorlite.sketch.space import Space

Rows: TypeAlias = NDArray[np.int64]
Scores: TypeAlias = NDArray[np.float64]
#: Of ``(n, holes)`` rows, ``(n,)``: higher is better.
Score: TypeAlias = Callable[[Rows], Scores]


class Explorer(Protocol):
    """Looks for rows of a high score."""

    def __call__(self, score: Score, best: Rows, effort: float, taken: Set[bytes], /) -> tuple[Rows, Scores]:
        """Rows of a high score, best first: valid ones, no two of one program, none whose key is in ``taken``.

        Args:
            score: of rows; it changes from round to round.
            best: the rows that were measured so far and ran, fastest first.
            effort: from 0 to 1, the share of the search's effort that goes into this sketch now.
        """
        ...


#: What makes the explorer of a sketch, of its space and of the generator of its random draws.
ExplorerMaker: TypeAlias = Callable[[Space, np.random.Generator], Explorer]


@dataclasses.dataclass(frozen=True)
class Evolving:
    """Makes explorers that breed a population anew in each round, the best measured among the first of it.

    Attributes:
        evolution: its population is that of all sketches together; they share it as they share the batch.
        least_population: the smallest population of one sketch.
        measured: how many of a population's first rows, as a share, may be the best ones measured.
    """

    evolution: EvolutionSettings = dataclasses.field(default_factory=EvolutionSettings)
    least_population: int = 256
    measured: float = 0.1

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        def explore(score: Score, best: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            population = max(self.least_population, round(effort * self.evolution.population))
            settings = dataclasses.replace(self.evolution, population=population)
            return evolve(space, score, best[: int(self.measured * population)], settings, rng, taken)

        return explore


@dataclasses.dataclass(frozen=True)
class Annealing:
    """Makes explorers that walk by simulated annealing, as AutoTVM's does (Chen et al., NeurIPS 2018; apache/tvm v0.14,
    ``autotvm/tuner/sa_model_optimizer.py``).

    Many chains at once each re-draw one hole a step; a worse point is taken with chance ``exp(change / temperature)``, the
    temperature falling linearly. Chains stay where they are between rounds.

    Attributes:
        chains: of all sketches together.
        steps: of a chain, in a round.
        idle: a round ends after so many steps that put nothing new among the best.
        start: the temperature falls from it to 0.
        keep: at most how many rows are handed on.
    """

    chains: int = 128
    steps: int = 500
    idle: int = 50
    start: float = 1.0
    keep: int = 128

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        return _Annealer(space, rng, self)


#: Added to a temperature, so that there is one at the end.
_COLD: Final = 1e-5


class _Annealer:
    def __init__(self, space: Space, rng: np.random.Generator, settings: Annealing) -> None:
        self._space = space
        self._rng = rng
        self._settings = settings
        self._points = np.zeros((0, len(space.sizes)), np.int64)

    def __call__(self, score: Score, _: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
        settings, space, rng = self._settings, self._space, self._rng
        chains = max(8, round(effort * settings.chains))
        fresh = space.sample(max(0, chains - len(self._points)), rng)
        points = np.concatenate([self._points[:chains], fresh])
        found = Found(space, taken, settings.keep)
        scores = found.scored(score, points)
        idle = 0
        for step in range(settings.steps):
            moved = points.copy()
            hole = rng.integers(len(space.sizes), size=len(points)) if len(space.sizes) else np.zeros(len(points), np.int64)
            if len(space.sizes):
                moved[np.arange(len(points)), hole] = rng.integers(space.sizes[hole])
            new = found.scored(score, moved)
            temperature = settings.start * (1 - step / settings.steps)
            with np.errstate(invalid="ignore", over="ignore"):
                chance = np.exp(np.minimum((new - scores) / (temperature + _COLD), 0.0))
            accepted = (rng.random(len(points)) < np.nan_to_num(chance, nan=1.0)) & (new > -np.inf)
            points[accepted], scores[accepted] = moved[accepted], new[accepted]
            idle = 0 if found.improved() else idle + 1
            if idle >= settings.idle:
                break
        self._points = points
        return found.rows()


class Found:
    """The best programs met on a walk; each is scored once.

    Args:
        taken: keys that may be met but are not handed on.
        keep: at most how many rows are handed on.
    """

    def __init__(self, space: Space, taken: Set[bytes], keep: int) -> None:
        self._space = space
        self._taken = taken
        self._keep = keep
        self._scores: dict[bytes, float] = {}
        self._known: set[bytes] = set()  # the keys of those scores
        self._best: dict[bytes, tuple[float, Rows]] = {}
        self._floor = -np.inf
        self._improved = False

    def scored(self, score: Score, rows: Rows) -> Scores:
        """``(n,)``; -inf for what is not valid."""
        row_keys = keys(self._space, rows)
        new = np.array(first_of_each(row_keys, self._known), np.int64)
        if len(new):
            valid = self._space.valid(rows[new])
            values = np.full(len(new), -np.inf)
            if valid.any():
                values[valid] = score(rows[new[valid]])
            for at, value in zip(new.tolist(), values.tolist(), strict=True):
                self._scores[row_keys[at]] = value
                self._note(row_keys[at], value, rows[at])
        return np.array([self._scores[key] for key in row_keys])

    def _note(self, key: bytes, value: float, row: Rows) -> None:
        if key in self._taken or not value > self._floor:
            return
        self._best[key] = (value, row.copy())
        self._improved = True
        if len(self._best) >= 2 * self._keep:
            order = sorted(self._best, key=lambda each: -self._best[each][0])[: self._keep]
            self._best = {each: self._best[each] for each in order}
            self._floor = self._best[order[-1]][0]

    def improved(self) -> bool:
        """Whether there is something new among the best since the last call."""
        found, self._improved = self._improved, False
        return found

    def rows(self) -> tuple[Rows, Scores]:
        """The best, best first."""
        none = np.zeros((0, len(self._space.sizes)), np.int64)
        rows = np.stack([row for _, row in self._best.values()]) if self._best else none
        scores = np.array([value for value, _ in self._best.values()])
        order = best_first(scores)[: self._keep]
        return rows[order], scores[order]


@dataclasses.dataclass(frozen=True)
class Generations:
    """Makes explorers that evolve as Ansor does (Zheng et al., OSDI 2020; apache/tvm v0.14,
    ``src/auto_scheduler/search_policy/sketch_policy.cc``).

    A generation is drawn from the one before it, each row by its score; a share of it is mutated, none is crossed. Which hole is
    mutated is up to the space, where tiles are likelier than the rest (there: 0.90 tiles, 0.05 places, 0.04 unrolling, 0.01
    parallel loops).

    Attributes:
        population, generations: all sketches together have one population.
        mutation: the share that is mutated.
        measured: the share of the first population that are the best ones measured.
        keep: at most how many rows are handed on.
    """

    population: int = 2048
    generations: int = 4
    mutation: float = 0.85
    measured: float = 0.2
    keep: int = 512

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        def explore(score: Score, best: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            count = max(16, round(effort * self.population))
            first = best[: int(self.measured * count)]
            rows = np.concatenate([first, space.sample(count - len(first), rng)])
            found = Found(space, taken, self.keep)
            for _ in range(self.generations):
                scores = found.scored(score, rows)
                fit = np.where(scores > -np.inf, scores - scores[scores > -np.inf].min(initial=0.0), 0.0)
                total = fit.sum()
                rows = rows[rng.choice(len(rows), size=count, p=fit / total if total > 0 else None)]
                mutated = rng.random(count) < self.mutation
                rows[mutated] = space.mutate(rows[mutated], rng)
            found.scored(score, rows)
            return found.rows()

        return explore
