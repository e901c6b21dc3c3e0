"""A genetic algorithm whose children keep the constraints (Heron's CGA: Bi et al., ASPLOS 2023; IPRC-ICT/Heron)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.exploration import Fixed
from ansorlite.search.explorers import Explorer, Found, Rows, Score, Scores
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import Roulette
from ansorlite.sketch.space import Space


@dataclass(frozen=True)
class ConstrainedGenetic:
    """Makes explorers whose children are made of key holes of two parents, and of what a solution of the constraints has
    elsewhere.

    There, a solver fills the other holes. Here a valid row of the space does; where the key holes do not go with it, one after
    another is given up, until the row is valid: the valid row itself is at the end. Key holes are those whose values tell most of
    the score, as the paper has it (in what was released they are drawn at random).

    Attributes:
        population, generations: rows of a generation, and how many there are.
        history: so many of the best measured are parents.
        parents: so many of a generation, drawn by their score, have children.
        keys: the share of the holes that are key holes.
        keep: at most how many rows are handed on.
    """

    population: int = 200
    generations: int = 5
    history: int = 32
    parents: int = 100
    keys: float = 0.2
    keep: int = 128

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        def explore(score: Score, best: Rows, _: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            found = Found(space, taken, self.keep)
            first = best[: self.history]
            rows = np.concatenate([first, space.sample(self.population - len(first), rng)])
            for _ in range(self.generations):
                scores = found.scored(score, rows)
                usable = scores > -np.inf
                rows, scores = rows[usable], scores[usable]
                if not len(rows):
                    rows = space.sample(self.population, rng)
                    continue
                above = scores - scores.min() + 1e-9
                chosen = rows[rng.choice(len(rows), size=self.parents, p=above / above.sum())]
                rows = self._children(space, chosen, self._key_holes(space, rows, scores), rng)
            found.scored(score, rows)
            return found.rows()

        return explore

    def _key_holes(self, space: Space, rows: Rows, scores: Scores) -> Rows:
        """The holes whose values tell most of the score: by the share of its variance that is between their values."""
        told = np.zeros(len(space.sizes))
        for hole in range(len(space.sizes)):
            _, group = np.unique(rows[:, hole], return_inverse=True)
            counts = np.bincount(group)
            means = np.bincount(group, scores) / counts
            # Where every row has a value of its own, that tells nothing.
            freedom = (len(rows) - len(counts)) / max(len(rows) - 1, 1)
            told[hole] = float((counts * (means - scores.mean()) ** 2).sum()) * freedom
        return np.argsort(-told, kind="stable")[: max(1, round(self.keys * len(space.sizes)))]

    def _children(self, space: Space, parents: Rows, key_holes: Rows, rng: np.random.Generator) -> Rows:
        solution = space.sample(self.population, rng)
        if not len(key_holes) or not len(space.sizes):
            return solution
        mothers, fathers = (parents[rng.integers(len(parents), size=self.population)] for _ in range(2))
        crossed = np.where(rng.random(solution.shape) < 0.5, mothers, fathers)
        kept = np.zeros(solution.shape, bool)
        kept[:, key_holes] = True
        if len(key_holes) > 1:  # mutation: one of the keys is not kept
            kept[np.arange(len(kept)), rng.choice(key_holes, size=len(kept))] = False
        order = rng.permutation(key_holes)
        children = np.where(kept, crossed, solution)
        for hole in order.tolist():
            wrong = ~space.valid(children)
            if not wrong.any():
                break
            children[wrong, hole] = solution[wrong, hole]
        return children


def heron(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Heron's search: of what the constrained genetic algorithm finds, 60 % greedily and 40 % by roulette."""
    settings = EvolutionarySettings(explorer=ConstrainedGenetic(), selector=Roulette(0.6), exploration=Fixed(0.0))
    return EvolutionarySearch(problem, model, rng, settings)
