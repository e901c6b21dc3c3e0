"""Strategies: which candidates of a task to measure next."""

from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.log import RoundLog
from ansorlite.search.protocol import SearchProblem, Strategy
from ansorlite.search.random import RandomSearch
from ansorlite.search.strategies import STRATEGIES, StrategyMaker

__all__ = [
    "STRATEGIES",
    "EvolutionarySearch",
    "EvolutionarySettings",
    "RandomSearch",
    "RoundLog",
    "SearchProblem",
    "Strategy",
    "StrategyMaker",
]
