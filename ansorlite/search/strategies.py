"""The strategies by name. A new one is a file beside these and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.ansor import ansor, autotvm
from ansorlite.search.evolutionary import EvolutionarySearch
from ansorlite.search.genetic import GeneticSearch
from ansorlite.search.gradient import gradient
from ansorlite.search.grid import GridSearch
from ansorlite.search.local import Descent, LocalSearch, SimulatedAnnealing
from ansorlite.search.protocol import SearchProblem, Strategy
from ansorlite.search.random import random_search
from ansorlite.search.value import ValueSearch

#: What makes a strategy for the sketches of a task, of the cost model that they get and of the generator of all its random draws.
StrategyMaker: TypeAlias = Callable[[SearchProblem, CostModel, np.random.Generator], Strategy]

STRATEGIES: Final[dict[str, StrategyMaker]] = {
    "evolutionary": EvolutionarySearch,
    "random": random_search,
    "grid": GridSearch,
    "genetic": GeneticSearch,
    "annealing": SimulatedAnnealing,
    "local": LocalSearch,
    "descent": Descent,
    "ansor": ansor,
    "autotvm": autotvm,
    "gradient": gradient,
    "value": ValueSearch,
}
