"""The knobs of an evolution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EvolutionSettings:
    """How an evolution goes.

    Attributes:
        population: rows of a generation.
        generations: how many follow the first; each is scored once.
        mutation: the share of children that are mutated (Ansor: 0.85).
        crossover: the share of children that have two parents; a child with one parent is always mutated.
        immigrants: the share of each later generation that is sampled anew, so that it does not collapse.
        tournament: how many are drawn for each parent's place, the best of which gets it. Only the order of the scores
            counts, so that flat scores make selection uniform instead of undefined.
        parents: how many of the best ever scored may have children. Few: with four generations there is no time to
            lose on the mediocre.
        keep: at most how many rows are returned.
    """

    population: int = 2048
    generations: int = 4
    mutation: float = 0.85
    crossover: float = 0.5
    immigrants: float = 0.05
    tournament: int = 3
    parents: int = 128
    keep: int = 512
