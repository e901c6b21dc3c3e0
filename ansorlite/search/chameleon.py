"""Chameleon (Ahn et al., ICLR 2020; anony-sub/chameleon): a learnt policy looks through the space, and of what it likes one
program a cluster is measured."""

from __future__ import annotations

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.explorers import Annealing
from ansorlite.search.ppo import PolicyWalk
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import Medoids


def chameleon(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Adaptive exploration and adaptive sampling."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=PolicyWalk(), selector=Medoids()))


def chameleon_sampling(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """Its adaptive sampling of what AutoTVM's annealing finds."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=Annealing(keep=256), selector=Medoids()))
