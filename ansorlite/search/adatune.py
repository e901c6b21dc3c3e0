"""The search of AdaTune (Li et al., NeurIPS 2020; limenghao/AdaTune): annealing for what is expected to improve, and as much at
random as the model is unsure."""

from __future__ import annotations

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.acquisition import expected_improvement
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.exploration import Contextual
from ansorlite.search.explorers import Annealing
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import top


def adatune(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """
    Raises:
        ArgumentError: the model does not say how sure it is.
    """
    settings = EvolutionarySettings(
        explorer=Annealing(), selector=top, exploration=Contextual(), acquisition=expected_improvement
    )
    return EvolutionarySearch(problem, model, rng, settings)
