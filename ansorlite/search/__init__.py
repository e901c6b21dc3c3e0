"""Strategies: which candidates of a task to measure next; and which to take where nothing has been measured."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.search.asked import asking
    from ansorlite.search.default import default_candidate, default_candidates
    from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
    from ansorlite.search.log import RoundLog
    from ansorlite.search.observation import Observation
    from ansorlite.search.protocol import SearchProblem, Strategy
    from ansorlite.search.random import RandomSearch
    from ansorlite.search.strategies import STRATEGIES, StrategyMaker

__all__ = [
    "STRATEGIES",
    "EvolutionarySearch",
    "EvolutionarySettings",
    "Observation",
    "RandomSearch",
    "RoundLog",
    "SearchProblem",
    "Strategy",
    "StrategyMaker",
    "asking",
    "default_candidate",
    "default_candidates",
]

_HOMES: Final = {
    "STRATEGIES": "ansorlite.search.strategies",
    "EvolutionarySearch": "ansorlite.search.evolutionary",
    "EvolutionarySettings": "ansorlite.search.evolutionary",
    "Observation": "ansorlite.search.observation",
    "RandomSearch": "ansorlite.search.random",
    "RoundLog": "ansorlite.search.log",
    "SearchProblem": "ansorlite.search.protocol",
    "Strategy": "ansorlite.search.protocol",
    "StrategyMaker": "ansorlite.search.strategies",
    "asking": "ansorlite.search.asked",
    "default_candidate": "ansorlite.search.default",
    "default_candidates": "ansorlite.search.default",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
