"""Selectors: which programs that an explorer found are measured. Where the model is wrong, a batch of near twins is wrong all
together.

A selector gives positions in the pool, the first to be measured first: as many as are wanted, or all there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite import lazy
from ansorlite.evolution import spread
from ansorlite.search.protocol import Described

if TYPE_CHECKING:
    from scipy.cluster import vq
else:
    vq = lazy.module("scipy.cluster.vq")

Rows: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64]
Positions: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pool:
    """Programs of one sketch, none of which is measured; no two are one program.

    Attributes:
        rows: ``(m, holes)``, those of the highest score first.
        scores: ``(m,)``.
        programs: what is known of them.
        doubt: tells ``(m,)`` how unsure the scores are; zeros where the model does not say. Asked only if it is needed.
    """

    rows: Rows
    scores: Numbers
    programs: Described
    doubt: Callable[[], Numbers]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def knobs(self) -> Numbers:
        """``(m, d)``: coordinates in which near rows are similar programs."""
        return self.programs.knobs

    @cached_property
    def deviations(self) -> Numbers:
        """``(m,)``: how unsure the scores are."""
        return self.doubt()


Selector: TypeAlias = Callable[[Pool, int, np.random.Generator], Positions]


def top(pool: Pool, n: int, _: np.random.Generator) -> Positions:
    """Those of the highest score."""
    return np.arange(min(n, len(pool)))


@dataclass(frozen=True)
class Spread:
    """Those of the highest score that differ from one another in so many holes, as far as there are such."""

    distance: int = 2

    def __call__(self, pool: Pool, n: int, _: np.random.Generator) -> Positions:
        return spread(pool.rows, n, self.distance)


@dataclass(frozen=True)
class Submodular:
    """One after another what has the highest score and values of holes that the batch has not (AutoTVM's ``submodular_pick``).

    Attributes:
        weight: of one new value of a hole, as a share of the range of the scores.
        considered: so many times the wanted, of the highest score, are looked at.
    """

    weight: float = 0.1
    considered: int = 8

    def __call__(self, pool: Pool, n: int, _: np.random.Generator) -> Positions:
        m = min(len(pool), self.considered * n)
        rows, scores = pool.rows[:m], pool.scores[:m]
        gain = self.weight * max(float(np.ptp(scores)), 1e-12) if m else 0.0
        new = np.ones(rows.shape, bool)  # which values of a row no chosen one has
        left = np.ones(m, bool)
        chosen: list[int] = []
        while len(chosen) < min(n, m):
            worth = np.where(left, scores + gain * new.sum(axis=1), -np.inf)
            best = int(worth.argmax())
            chosen.append(best)
            left[best] = False
            new &= rows != rows[best]
        return np.array(chosen, np.int64)


#: A cut into more clusters is worth it while it lowers the distances to less than this share (Chameleon's release: 1 / 2.5).
_KNEE: Final = 1 / 2.5


@dataclass(frozen=True)
class Medoids:
    """One program of each cluster of the pool (Chameleon's adaptive sampling: Ahn et al., ICLR 2020).

    There are 8, 16, ... clusters, until more do not help. From each the one that is nearest to its centre, in the order of their
    scores; what else is wanted are the next nearest. There, only the two largest knobs count, and a centre's other knobs are
    drawn from anywhere; here all do, and what is measured is of the pool.

    Attributes:
        considered: so many times the wanted, of the highest score, are clustered.
        first: clusters at first.
    """

    considered: int = 4
    first: int = 8

    def __call__(self, pool: Pool, n: int, rng: np.random.Generator) -> Positions:
        m = min(len(pool), self.considered * n)
        if m <= n:
            return np.arange(m)
        knobs = pool.knobs[:m]
        width = knobs.std(axis=0)
        points = knobs / np.where(width > 0, width, 1.0)
        label, far = self._clustered(points, n, rng)
        # Of each cluster the nearest, the next nearest, ...: by turn, then by score.
        turn = np.zeros(m, np.int64)
        for cluster in np.unique(label):
            members = np.flatnonzero(label == cluster)
            turn[members[np.argsort(far[members], kind="stable")]] = np.arange(len(members))
        return np.lexsort((np.arange(m), turn))[:n]

    def _clustered(self, points: Numbers, n: int, rng: np.random.Generator) -> tuple[Positions, Numbers]:
        """The cluster of each point, and how far it is from its centre."""
        count, last = min(self.first, n), np.inf
        while True:
            centres, label = vq.kmeans2(points, count, minit="++", seed=rng, missing="warn")
            far = np.linalg.norm(points - centres[label], axis=1)
            loss = float((far**2).sum())
            if count >= n or loss >= _KNEE * last:
                return label.astype(np.int64), far
            count, last = min(2 * count, n), loss


@dataclass(frozen=True)
class Roulette:
    """A share of those of the highest score; the rest by chance, in proportion to the score (Heron's: 0.6)."""

    greedy: float = 0.6

    def __call__(self, pool: Pool, n: int, rng: np.random.Generator) -> Positions:
        n = min(n, len(pool))
        first = round(self.greedy * n)
        rest = np.arange(first, len(pool))
        above = pool.scores[rest] - pool.scores[rest].min(initial=0.0) + 1e-9
        drawn = rng.choice(rest, size=n - first, replace=False, p=above / above.sum()) if n > first else rest[:0]
        return np.concatenate([np.arange(first), np.sort(drawn)])


@dataclass(frozen=True)
class RDU:
    """By representativeness, diversity and uncertainty: the three terms that TCL's abstract names; how they are joined is ours.

    One after another the program whose deviation is large, that has many near ones in the pool, and that is far from those
    chosen.

    Attributes:
        considered: so many times the wanted, of the highest score, are looked at.
        near: so many neighbours say how representative one is.
    """

    considered: int = 4
    near: int = 5

    def __call__(self, pool: Pool, n: int, _: np.random.Generator) -> Positions:
        m = min(len(pool), self.considered * n)
        if m <= n:
            return np.arange(m)
        knobs = pool.knobs[:m]
        apart = np.linalg.norm(knobs[:, None, :] - knobs[None, :, :], axis=2)
        dense = 1.0 / (1.0 + np.sort(apart, axis=1)[:, 1 : self.near + 1].mean(axis=1))
        unsure = pool.deviations[:m] + 1e-9
        chosen = [0]
        nearest = apart[0].copy()
        while len(chosen) < n:
            worth = dense * unsure * nearest
            worth[chosen] = -1.0
            best = int(worth.argmax())
            chosen.append(best)
            nearest = np.minimum(nearest, apart[best])
        return np.array(chosen, np.int64)


SELECTORS: Final[Mapping[str, Selector]] = {
    "top": top,
    "spread": Spread(),
    "submodular": Submodular(),
    "medoids": Medoids(),
    "roulette": Roulette(),
    "rdu": RDU(),
}
