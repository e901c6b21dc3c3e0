"""Search spaces and a machine that are known in closed form, to test searches without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansorlite.features.programs import ProgramSpace
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.directions import Directions

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class OrdinalSpace:
    """A product of ordinal holes, where hole 0 at its value 0 makes the last hole meaningless.

    ``allowed`` says which rows are valid; by default all.
    """

    extents: tuple[int, ...]
    allowed: Callable[[Rows], NDArray[np.bool_]] = lambda rows: np.ones(len(rows), bool)

    @cached_property
    def sizes(self) -> Rows:
        return np.asarray(self.extents, np.int64)

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(range(len(self.extents)))

    @cached_property
    def directions(self) -> Directions:
        return Directions.of(self.extents)

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        return rng.integers(0, self.sizes, size=(n, len(self.sizes)))

    def canonical(self, rows: Rows) -> Rows:
        result = rows.copy()
        if rows.shape[1] > 1:
            result[rows[:, 0] == 0, -1] = 0
        return result

    def valid(self, rows: Rows) -> NDArray[np.bool_]:
        return self.allowed(rows)

    def neighbours(self, row: Rows) -> Rows:
        steps = np.concatenate([np.eye(len(row), dtype=np.int64), -np.eye(len(row), dtype=np.int64)])
        around = row + steps
        return around[((around >= 0) & (around < self.sizes)).all(axis=1)]

    def mutate(self, rows: Rows, rng: np.random.Generator) -> Rows:
        result = rows.copy()
        hole = rng.integers(len(self.sizes), size=len(rows))
        at = np.arange(len(rows))
        result[at, hole] = np.clip(result[at, hole] + rng.choice([-1, 1], size=len(rows)), 0, self.sizes[hole] - 1)
        return result

    def crossover(self, a: Rows, b: Rows, rng: np.random.Generator) -> Rows:
        return np.where(rng.random(a.shape) < 0.5, a, b)

    def embed(self, rows: Rows) -> NDArray[np.float64]:
        return rows.astype(np.float64)

    def complete(self, prefixes: Rows, rng: np.random.Generator) -> Rows:
        result = self.sample(len(prefixes), rng)
        result[:, : prefixes.shape[1]] = prefixes
        return result


@dataclass(frozen=True)
class SyntheticPrograms:
    """What a strategy asks of :class:`ansorlite.features.programs.Programs`."""

    features: NDArray[np.float64]
    knobs: NDArray[np.float64]


class SyntheticProgramSpace(ProgramSpace):
    """The programs of a space without a sketch: a candidate is the name and the row.

    Args:
        features: those of the programs of rows.
    """

    def __init__(self, name: str, space: OrdinalSpace, features: Callable[[Rows], NDArray[np.float64]]) -> None:
        self.name = name
        self.space = space
        self._features = features

    def programs(self, rows: Rows) -> SyntheticPrograms:  # type: ignore[override]
        return SyntheticPrograms(self._features(rows), self.space.embed(rows))

    def candidate(self, row: tuple[int, ...]) -> Candidate:
        return Candidate(f"{self.name}: {' '.join(map(str, row))}")

    def row_of(self, candidate: Candidate) -> tuple[int, ...] | None:
        name, _, row = candidate.trace.partition(": ")
        return tuple(map(int, row.split())) if name == self.name else None


@dataclass(frozen=True)
class Machine:
    """Latency of a row: a valley around ``optimum``, with neighbouring holes that interact.

    ``features`` gives two statements of a program; neither is the latency, but both tell of it.
    """

    optimum: tuple[int, ...]
    floor: float = 1e-3

    def latency(self, rows: Rows) -> NDArray[np.float64]:
        off = rows - np.asarray(self.optimum)
        bent = (off**2).sum(axis=1) + (off[:, :-1] * off[:, 1:]).sum(axis=1)
        return self.floor * (1 + 0.05 * bent)

    def features(self, rows: Rows) -> NDArray[np.float64]:
        x = rows.astype(np.float64)
        neighbours = x * np.roll(x, 1, axis=1)
        return np.stack([np.concatenate([x, neighbours], axis=1), np.concatenate([neighbours, x[:, ::-1]], axis=1)], axis=1)
