"""The search of Ansor and of those like it: today's search with their explorers and their constants."""

from __future__ import annotations

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.explorers import Annealing, Generations
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import top


def ansor(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Ansor's evolution of 2,048 rows over 4 generations, 5 % of a batch at random (Zheng et al., OSDI 2020; apache/tvm v0.14,
    ``src/auto_scheduler``). The sketches share a batch as everywhere here; there they share one population."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=Generations(), selector=top))


def autotvm(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """AutoTVM's simulated annealing under the model: 128 chains of 500 steps, 5 % of a plan at random (Chen et al., NeurIPS 2018;
    apache/tvm v0.14, ``autotvm/tuner``)."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=Annealing(), selector=top))


def metaschedule(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """MetaSchedule's evolution of 512 rows over 4 generations (Shao et al., NeurIPS 2022; apache/tvm v0.14,
    ``src/meta_schedule/search_strategy/evolutionary_search.cc``). Which hole is mutated is up to the space, as in Ansor's."""
    settings = EvolutionarySettings(explorer=Generations(population=512, generations=4, measured=0.2), selector=top)
    return EvolutionarySearch(problem, model, rng, settings)
