"""Which share of a batch is drawn at random, so that the model also learns of what it does not like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ansorlite.search.log import RoundLog

#: How sure the model is of programs at random: their mean standard deviation, as a share of the best score of a measured program;
#: asked only by what goes by it. Infinite where it knows nothing yet.
Doubt: TypeAlias = Callable[[], float]
#: From the rounds so far, from 0 to 1.
Exploration: TypeAlias = Callable[[Sequence[RoundLog], Doubt], float]


@dataclass(frozen=True)
class Fixed:
    """Always the same share."""

    share: float = 0.05

    def __call__(self, _: Sequence[RoundLog], __: Doubt) -> float:
        return self.share


@dataclass(frozen=True)
class Contextual:
    """As large a share as the model is unsure (AdaTune: Li et al., NeurIPS 2020).

    There, the best score was never set in what they released, so that this did not run.

    Attributes:
        most: the largest share.
    """

    most: float = 1.0

    def __call__(self, _: Sequence[RoundLog], doubt: Doubt) -> float:
        return min(self.most, max(0.0, doubt()))


@dataclass(frozen=True)
class ByRank:
    """From ``least``, where the last whole round came out in the order that the model said, to ``most`` where in the reverse."""

    least: float = 0.05
    most: float = 0.25

    def __call__(self, rounds: Sequence[RoundLog], _: Doubt) -> float:
        known = [each.rank_correlation for each in rounds if np.isfinite(each.rank_correlation)]
        rank = known[-1] if known else 1.0
        return self.least + (self.most - self.least) * (1.0 - rank) / 2
