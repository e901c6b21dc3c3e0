"""The explorers by name. A new one is a file beside these and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ansorlite.search.beam import Beam
from ansorlite.search.constrained import ConstrainedGenetic
from ansorlite.search.evolution_strategy import EvolutionStrategy
from ansorlite.search.explorers import Annealing, Evolving, ExplorerMaker, Generations
from ansorlite.search.gradient import Gradient
from ansorlite.search.ppo import PolicyWalk
from ansorlite.search.synthesis import Synthesis
from ansorlite.search.tree import TreeSearch

EXPLORERS: Final[Mapping[str, ExplorerMaker]] = {
    "evolving": Evolving(),
    "generations": Generations(),
    "annealing": Annealing(),
    "trees": TreeSearch(),
    "beam": Beam(),
    "constrained": ConstrainedGenetic(),
    "policy": PolicyWalk(),
    "synthesis": Synthesis(Annealing(keep=256)),
    "cma": EvolutionStrategy(),
    "gradient": Gradient(),
}
