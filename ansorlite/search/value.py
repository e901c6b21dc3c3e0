"""Value learning: how good is the best program that begins so? (Steiner et al., MLSys 2021)

What was measured is told back to every beginning of a row; a network learns it; beam search under the network finds what to
measure next, hole by hole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import CostModel, neural
from ansorlite.search.arm import Arm
from ansorlite.search.coordinates import HoleCoordinates, coordinates
from ansorlite.search.measured import MeasuredSearch, Rows, new
from ansorlite.search.protocol import SearchProblem

Floats = NDArray[np.float64]


class ValueFunction(Protocol):
    """Says of the first choices of rows, in the order of a space, how good what they lead to can be; higher is better."""

    def __call__(self, prefixes: Rows) -> Floats:
        """``(n, k)`` to ``(n,)``: the first ``k`` choices, at least one."""
        ...


@dataclass(frozen=True)
class ValueSettings:
    """The knobs of the search.

    Attributes:
        width: so many beginnings are kept at each hole, at least.
        values: at most so many values of a hole are tried for each, drawn at random.
        warm_up: before so many programs of a sketch were measured, all are drawn at random.
        epochs: of the network's training.
        epsilon: the share of a batch that is drawn at random.
    """

    width: int = 32
    values: int = 64
    warm_up: int = 8
    epochs: int = 100
    epsilon: float = 0.05


class ValueSearch(MeasuredSearch):
    """A round: learn from all that was measured, search with a beam, measure where it ends."""

    def __init__(
        self, problem: SearchProblem, model: CostModel, rng: np.random.Generator, settings: ValueSettings = ValueSettings()
    ) -> None:
        super().__init__(problem, model, rng)
        self._settings = settings

    def choose(self, arm: Arm, n: int) -> Rows:
        settings, latencies = self._settings, arm.latencies
        if len(latencies) < settings.warm_up or not np.isfinite(latencies).any() or not len(arm.space.sizes):
            return arm.rows[:0]
        order = np.array(arm.space.order)
        value = _Learnt(coordinates(arm.space, arm.rows[0]), order, self._rng, settings.epochs)
        value.fit(arm.rows[:, order], latencies)
        # Some of what the beam ends with is known, or no program.
        found = beam(arm.space.sizes[order], value, max(settings.width, 4 * n), settings.values, self._rng)
        rows = np.empty_like(found)
        rows[:, order] = found
        return new(arm, rows)[: n - int(settings.epsilon * n + self._rng.random())]


def beam(sizes: Rows, value: ValueFunction, width: int, values: int, rng: np.random.Generator) -> Rows:
    """``(at most width, holes)`` rows, the best first: at each hole, the best beginnings are kept.

    Args:
        sizes: ``(holes,)``: how many values each hole has, in the order in which they are chosen.
        values: at most so many are tried of a hole, for each beginning.
    """
    kept = np.zeros((1, 0), np.int64)
    for size in sizes.tolist():
        tried = np.arange(size) if size <= values else rng.choice(size, size=values, replace=False)
        longer = np.concatenate([np.repeat(kept, len(tried), axis=0), np.tile(tried, len(kept))[:, None]], axis=1)
        kept = longer[np.argsort(-value(longer), kind="stable")[:width]]
    return kept


def best_below(rows: Rows, latencies: Floats) -> Floats:
    """``(n, holes)``: of the first 1, 2, ... choices of each row, the best speed of all rows that begin with them.

    Speeds are shares of the best of all; that of a failure is 0.
    """
    speed = np.where(np.isfinite(latencies), latencies.min() / latencies, 0.0)
    result = np.empty(rows.shape)
    for count in range(rows.shape[1]):
        _, begins = np.unique(rows[:, : count + 1], axis=0, return_inverse=True)
        best = np.zeros(int(begins.max()) + 1)
        np.maximum.at(best, begins.reshape(-1), speed)
        result[:, count] = best[begins.reshape(-1)]
    return result


class _Learnt:
    """A :class:`ValueFunction` of one sketch, from measured rows."""

    def __init__(self, holes: Sequence[HoleCoordinates], order: Rows, rng: np.random.Generator, epochs: int) -> None:
        self._holes = [holes[hole] for hole in order.tolist()]
        self._width = max(1, max(len(hole.columns) for hole in holes))
        self._net = neural.PrefixValue(rng, epochs)

    def fit(self, rows: Rows, latencies: Floats) -> None:
        self._net.fit(self._steps(rows), best_below(rows, latencies))

    def __call__(self, prefixes: Rows) -> Floats:
        return self._net.predict(self._steps(prefixes))

    def _steps(self, rows: Rows) -> Floats:
        """``(n, k, 1 + width)``: of each choice, which it is, and the coordinates of the value."""
        result = np.zeros((*rows.shape, 1 + self._width))
        for step, hole in enumerate(self._holes[: rows.shape[1]]):
            result[:, step, 0] = step
            result[:, step, 1 : 1 + len(hole.columns)] = hole.values[rows[:, step]]
        return result
