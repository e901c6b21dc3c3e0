"""The strategies by name. A new one is a file beside these and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.adatune import adatune
from ansorlite.search.ansor import ansor, autotvm, metaschedule
from ansorlite.search.bayesian import BayesianSearch
from ansorlite.search.chameleon import chameleon, chameleon_sampling
from ansorlite.search.constrained import heron
from ansorlite.search.evolution_strategy import tuna
from ansorlite.search.evolutionary import EvolutionarySearch
from ansorlite.search.flextensor import FlexTensorSearch
from ansorlite.search.genetic import GeneticSearch, genes
from ansorlite.search.gradient import gradient
from ansorlite.search.grid import GridSearch
from ansorlite.search.lfbo import ClassifyingSearch
from ansorlite.search.local import Descent, LocalSearch, SimulatedAnnealing
from ansorlite.search.protocol import SearchProblem, Strategy
from ansorlite.search.pruner import pruner
from ansorlite.search.random import RandomSearch
from ansorlite.search.reinforce import PolicySearch
from ansorlite.search.synthesis import chameleon_synthesis
from ansorlite.search.tree import protuner
from ansorlite.search.value import ValueSearch

#: What makes a strategy for the sketches of a task, of the cost model that they get and of the generator of all its random draws.
StrategyMaker: TypeAlias = Callable[[SearchProblem, CostModel, np.random.Generator], Strategy]

STRATEGIES: Final[dict[str, StrategyMaker]] = {
    "evolutionary": EvolutionarySearch,
    "random": RandomSearch,
    "grid": GridSearch,
    "genetic": GeneticSearch,
    "annealing": SimulatedAnnealing,
    "local": LocalSearch,
    "descent": Descent,
    "ansor": ansor,
    "autotvm": autotvm,
    "metaschedule": metaschedule,
    "adatune": adatune,
    "chameleon": chameleon,
    "chameleon_sampling": chameleon_sampling,
    "chameleon_synthesis": chameleon_synthesis,
    "protuner": protuner,
    "heron": heron,
    "tuna": tuna,
    "pruner": pruner,
    "lfbo": ClassifyingSearch,
    "bayesian": BayesianSearch,
    "genes": genes,
    "reinforce": PolicySearch,
    "flextensor": FlexTensorSearch,
    "gradient": gradient,
    "value": ValueSearch,
}
