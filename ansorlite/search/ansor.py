"""The search of Ansor and that of AutoTVM's model: today's search with their explorers and their constants."""

from __future__ import annotations

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.explorers import Annealing, Generations
from ansorlite.search.protocol import SearchProblem


def ansor(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Ansor's evolution of 2,048 rows over 4 generations, 5 % of a batch at random (Zheng et al., OSDI 2020; apache/tvm v0.14,
    ``src/auto_scheduler``). The sketches share a batch as everywhere here; there they share one population."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=Generations(), epsilon=0.05, spread=1))


def autotvm(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """AutoTVM's simulated annealing under the model: 128 chains of 500 steps, 5 % of a plan at random (Chen et al., NeurIPS 2018;
    apache/tvm v0.14, ``autotvm/tuner``)."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=Annealing(), epsilon=0.05, spread=1))
