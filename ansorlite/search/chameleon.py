"""Chameleon's adaptive sampling (Ahn et al., ICLR 2020; anony-sub/chameleon): of what the explorer likes, one program a cluster.

There, the explorer is a policy learnt by PPO; here it is the annealing that it took the place of.
"""

from __future__ import annotations

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.explorers import Annealing
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import Medoids


def chameleon(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Annealing under the model, and medoids of what it finds."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=Annealing(keep=256), selector=Medoids()))
