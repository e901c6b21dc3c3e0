"""Variants of the default that were tried on the tables: each went in or stays out with its row on the page. And presets without
what makes them what they are, which they are to beat.

What the reference names besides cannot be told by tables (programs of similar tasks come first: a table is one task), or is a
preset of its own (a classifier in the place of a regression, and batches diverse by its leaves: ``lfbo``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.evolution import EvolutionSettings
from ansorlite.search import Strategy, StrategyMaker
from ansorlite.search.acquisition import UpperBound
from ansorlite.search.bayesian import BayesianSearch, BayesianSettings
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.exploration import Fixed
from ansorlite.search.explorers import Evolving
from ansorlite.search.flextensor import FlexTensorSearch, WalkSettings
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import Spread, Submodular
from ansorlite.tuner.presets import DEFAULT, PRESETS, Preset
from benchmarks.search import persisting, polishing, source
from benchmarks.search.judge import Bench, Course
from benchmarks.search.results import digest

_DEFAULT: Final = PRESETS[DEFAULT]


@dataclass(frozen=True)
class Variant:
    """What differs from the default."""

    settings: EvolutionarySettings = field(default_factory=EvolutionarySettings)
    round: int = _DEFAULT.round
    cost_model: str = _DEFAULT.cost_model

    @property
    def preset(self) -> Preset:
        return replace(_DEFAULT, round=self.round, cost_model=self.cost_model)

    def strategy(self, problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
        """See ``StrategyMaker``."""
        return EvolutionarySearch(problem, model, rng, self.settings)

    def digest(self, table: Path) -> str:
        """Of all that a run of it over a table depends on."""
        parts = [digest(self.preset, table), str(self.settings), source.code(polishing.__name__)]
        if isinstance(self.settings.explorer, persisting.Persisting):
            parts.append(source.code(persisting.__name__))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def run(self, bench: Bench, trials: int, seed: int) -> Course:
        """See :meth:`Bench.run`."""
        return bench.run(self.preset, trials, seed, maker=self.strategy)


@dataclass(frozen=True)
class Rival:
    """A preset without what its authors say is the point of it.

    Attributes:
        preset: of which it is the rival.
        strategy: in the place of the preset's.
        settings: of that strategy: its name among digests.
    """

    preset: Preset
    strategy: StrategyMaker
    settings: object

    def digest(self, table: Path) -> str:
        """See :meth:`Variant.digest`."""
        return hashlib.sha256(f"{digest(self.preset, table)}\n{self.settings}".encode()).hexdigest()[:16]

    def run(self, bench: Bench, trials: int, seed: int) -> Course:
        """See :meth:`Bench.run`."""
        return bench.run(self.preset, trials, seed, maker=self.strategy)


def _rival(preset: str, strategy: Callable[..., Strategy], settings: object) -> Rival:
    return Rival(PRESETS[preset], partial(strategy, settings=settings), settings)


#: How the default was before, and what was tried: each is the default, but for what its name says.
BEFORE: Final = "as before: rounds of 16, programs 2 holes apart"
RANDOM_WALK: Final = "FlexTensor's walk in random directions"
NO_BELIEF: Final = "Bayesian optimisation without belief"
VARIANTS: Final[Mapping[str, Variant | Rival]] = {
    BEFORE: Variant(EvolutionarySettings(selector=Spread(2)), 16),
    "rounds of 16": Variant(round=16),
    "programs 2 holes apart": Variant(EvolutionarySettings(selector=Spread(2))),
    "programs 4 holes apart": Variant(EvolutionarySettings(selector=Spread(4))),
    "programs of new values (submodular)": Variant(EvolutionarySettings(selector=Submodular())),
    "every fourth a step from the best": Variant(EvolutionarySettings(explorer=polishing.Polishing())),
    "a fifth at random": Variant(EvolutionarySettings(exploration=Fixed(0.2))),
    "what was stopped is a bound, no label": Variant(cost_model="bounded"),
    "a population of 1024": Variant(EvolutionarySettings(explorer=Evolving(EvolutionSettings(population=1024)))),
    "12 generations": Variant(EvolutionarySettings(explorer=Evolving(EvolutionSettings(generations=12)))),
    "a population that lives on": Variant(EvolutionarySettings(explorer=persisting.Persisting())),
    "an uncertain model and its upper bound": Variant(EvolutionarySettings(acquisition=UpperBound()), cost_model="bagged"),
    RANDOM_WALK: _rival("flextensor", FlexTensorSearch, WalkSettings(learnt=False)),
    NO_BELIEF: _rival("bayesian", BayesianSearch, BayesianSettings(believes=False)),
}
