"""Draft, then verify (Pruner's latent schedule explorer: Qiao et al., ASPLOS 2025): the closed-form prior looks through many
programs, the learned model through the few that are left, and how unsure it is counts."""

from __future__ import annotations

from typing import Final

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.evolution import EvolutionSettings
from ansorlite.search.acquisition import UpperBound
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.explorers import Evolving
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import Spread

#: 8,192 programs are drafted, of which 512 are left; 4 generations of them.
DRAFTS: Final = EvolutionSettings(population=2048, generations=3, keep=512)


def pruner(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """
    Raises:
        ArgumentError: the model does not say how sure it is.
    """
    settings = EvolutionarySettings(explorer=Evolving(DRAFTS), selector=Spread(2), acquisition=UpperBound(), drafts=True)
    return EvolutionarySearch(problem, model, rng, settings)
