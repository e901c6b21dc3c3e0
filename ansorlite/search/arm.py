"""One sketch within a search: its space, what was tried of it and what that gave."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.evolution import first_of_each, keys
from ansorlite.sketch.space import Space

#: Spaces of at most so many rows are enumerated; of larger ones, the unseen are found by sampling.
ENUMERABLE: Final = 4096
#: How often fresh rows are sampled before a large space counts as spent.
_ATTEMPTS: Final = 8


class Arm:
    """The programs of one sketch. Programs are known by canonical key; each is taken at most once.

    Attributes:
        space: the sketch's space.
        taken: the keys of every program proposed or observed.
        spent: whether no program is left that was not taken, as far as a bounded search can tell.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.taken: set[bytes] = set()
        self.spent = False
        self._row_of: dict[bytes, int] = {}
        self._rows: list[NDArray[np.int64]] = []
        self._latencies: list[float] = []
        self._censored: list[bool] = []

    @property
    def rows(self) -> NDArray[np.int64]:
        """``(m, holes)``: the programs observed."""
        return np.stack(self._rows) if self._rows else np.zeros((0, len(self.space.sizes)), np.int64)

    @property
    def latencies(self) -> NDArray[np.float64]:
        """``(m,)`` seconds of :attr:`rows`; ``inf`` for a program that failed."""
        return np.asarray(self._latencies, np.float64)

    @property
    def censored(self) -> NDArray[np.bool_]:
        """``(m,)``: whether the seconds are a lower bound, of a program that was stopped for being slow."""
        return np.asarray(self._censored, bool)

    def best(self, n: int) -> NDArray[np.int64]:
        """At most ``n`` rows that ran, fastest first."""
        latencies = self.latencies
        order = np.argsort(latencies, kind="stable")[:n]
        return self.rows[order[np.isfinite(latencies[order])]]

    def observe(self, row: tuple[int, ...], latency: float | None, censored: bool = False) -> bytes:
        """Remember a measurement, the fastest one of each program; return the program's key.

        Raises:
            ValueError: the row is not one of the space.
        """
        array = np.asarray(row, np.int64)
        if array.shape != self.space.sizes.shape or (array < 0).any() or (array >= self.space.sizes).any():
            raise ValueError(f"row {row} does not fit a space of sizes {self.space.sizes.tolist()}")
        (key,) = keys(self.space, array[None])
        seconds = math.inf if latency is None else latency
        self.taken.add(key)
        if key in self._row_of:
            position = self._row_of[key]
            if seconds < self._latencies[position]:
                self._latencies[position], self._censored[position] = seconds, censored
        else:
            self._row_of[key] = len(self._rows)
            self._rows.append(array)
            self._latencies.append(seconds)
            self._censored.append(censored)
        return key

    def take(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Mark programs, none of which is taken yet, as proposed; return their keys."""
        row_keys = keys(self.space, rows)
        self.taken.update(row_keys)
        return row_keys

    def fresh(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """At most ``n`` random valid rows of distinct programs that are not taken; sets :attr:`spent` if they run out."""
        found = [np.zeros((0, len(self.space.sizes)), np.int64)]
        known = set(self.taken)
        total = math.prod(self.space.sizes.tolist())
        for _ in range(1 if total <= ENUMERABLE else _ATTEMPTS):
            missing = n - sum(map(len, found))
            if missing <= 0:
                break
            rows = _all_rows(self.space, rng) if total <= ENUMERABLE else self.space.sample(4 * missing + 16, rng)
            rows = rows[self.space.valid(rows)]
            found.append(rows[first_of_each(keys(self.space, rows), known)][:missing])
        result = np.concatenate(found)
        self.spent = len(result) < n if total <= ENUMERABLE else n > 0 and not len(result)
        return result


def _all_rows(space: Space, rng: np.random.Generator) -> NDArray[np.int64]:
    """Every row of the space, shuffled."""
    inner = np.cumprod([1, *space.sizes[:0:-1]])[::-1]  # rows per value of each hole; mixed radix
    return rng.permutation((np.arange(math.prod(space.sizes.tolist()))[:, None] // inner) % space.sizes)
