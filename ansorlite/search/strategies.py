"""The strategies by name. A new one is a file beside these and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.evolutionary import EvolutionarySearch
from ansorlite.search.protocol import SearchProblem, Strategy
from ansorlite.search.random import RandomSearch

STRATEGIES: Final[dict[str, Callable[[SearchProblem, CostModel, np.random.Generator], Strategy]]] = {
    "evolutionary": EvolutionarySearch,
    "random": lambda problem, _, rng: RandomSearch(problem, rng),
}
