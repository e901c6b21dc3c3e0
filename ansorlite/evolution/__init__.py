"""Populations of rows, bred under a score. Arrays only."""

from ansorlite.evolution.evolve import evolve, offspring
from ansorlite.evolution.keys import first_of_each, keys
from ansorlite.evolution.selection import best_first, epsilon_greedy, spread, tournament
from ansorlite.evolution.settings import EvolutionSettings

__all__ = [
    "EvolutionSettings",
    "best_first",
    "epsilon_greedy",
    "evolve",
    "first_of_each",
    "keys",
    "offspring",
    "spread",
    "tournament",
]
