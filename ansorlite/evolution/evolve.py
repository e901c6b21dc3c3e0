"""Evolution of a population of rows under a score: arrays in, arrays out.

Every generation is one call of each of ``space.crossover``, ``space.mutate``, ``space.canonical``, ``space.valid`` and
``score``. A program is scored once, however often it comes up. Nothing is retried until it works: a generation that
finds fewer new programs than it wants is simply smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.evolution.keys import fingerprints, first_of_each, keys
from ansorlite.evolution.selection import best_first, tournament
from ansorlite.evolution.settings import EvolutionSettings
from ansorlite.sketch.space import Space

Rows: TypeAlias = NDArray[np.int64]
Scores: TypeAlias = NDArray[np.float64]


def evolve(
    space: Space,
    score: Callable[[Rows], Scores],
    seeds: Rows,
    settings: EvolutionSettings,
    rng: np.random.Generator,
    seen: Set[bytes] = frozenset(),
) -> tuple[Rows, Scores]:
    """Breed rows of a high score.

    Args:
        space: where the rows live.
        score: ``(n, holes)`` rows to ``(n,)`` scores, higher is better; NaN and -inf mark what must not be proposed.
        seeds: ``(s, holes)`` rows to start from besides random ones, for example the best measured; may be empty.
        settings: sizes and shares.
        rng: the one source of randomness: equal generators give equal results.
        seen: canonical keys that may be parents but are not returned.

    Returns:
        ``(rows, scores)``, best first, at most ``settings.keep``: valid programs, no two with one key, none in
        ``seen``. Empty if there is none.
    """
    archive = _Archive(space, score)
    first = space.sample(max(0, settings.population - len(seeds)), rng)
    archive.add(np.concatenate([seeds, first]))
    immigrants = round(settings.immigrants * settings.population)
    for _ in range(settings.generations):
        parents, scores = archive.best(settings.parents)
        if not len(parents):
            archive.add(space.sample(settings.population, rng))
            continue
        children = offspring(space, parents, scores, settings.population - immigrants, settings, rng)
        archive.add(np.concatenate([children, space.sample(immigrants, rng)]))
    return archive.unseen(seen, settings.keep)


def offspring(space: Space, parents: Rows, scores: Scores, n: int, settings: EvolutionSettings, rng: np.random.Generator) -> Rows:
    """``n`` children of ``parents``: those that win tournaments, crossed and mutated in the shares of ``settings``."""
    children = parents[tournament(scores, n, settings.tournament, rng)]
    crossed = rng.random(n) < settings.crossover
    mates = parents[tournament(scores, int(crossed.sum()), settings.tournament, rng)]
    children[crossed] = space.crossover(children[crossed], mates, rng)
    # A child of one parent that is not mutated would be a copy.
    mutated = ~crossed | (rng.random(n) < settings.mutation)
    children[mutated] = space.mutate(children[mutated], rng)
    return children


class _Archive:
    """Every program scored so far, each once; what cannot be proposed is remembered only as known."""

    def __init__(self, space: Space, score: Callable[[Rows], Scores]) -> None:
        self._space = space
        self._score = score
        self._known: set[int] = set()
        self._rows: list[Rows] = [np.zeros((0, len(space.sizes)), np.int64)]
        self._scores: list[Scores] = [np.zeros(0)]

    def add(self, rows: Rows) -> None:
        """Score the new programs among ``rows``."""
        prints = fingerprints(self._space.canonical(rows))
        fresh = rows[first_of_each(prints.tolist(), self._known)]
        fresh = fresh[self._space.valid(fresh)]
        if not len(fresh):
            return
        scores = np.asarray(self._score(fresh), dtype=np.float64)
        usable = scores > -np.inf
        self._rows.append(fresh[usable])
        self._scores.append(scores[usable])

    def best(self, n: int) -> tuple[Rows, Scores]:
        rows, scores = np.concatenate(self._rows), np.concatenate(self._scores)
        order = best_first(scores)[:n]
        return rows[order], scores[order]

    def unseen(self, seen: Set[bytes], n: int) -> tuple[Rows, Scores]:
        """The best ``n`` whose keys are not in ``seen``."""
        rows, scores = self.best(sum(map(len, self._scores)))
        chosen: list[int] = []
        for begin in range(0, len(rows), max(1, n)):
            if len(chosen) >= n:
                break
            part = keys(self._space, rows[begin : begin + n])
            chosen += [begin + i for i, key in enumerate(part) if key not in seen]
        return rows[chosen[:n]], scores[chosen[:n]]
