"""From what a model expects of programs, and how sure it is, to what measuring each of them is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite import lazy

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy.module("scipy.special")

Numbers: TypeAlias = NDArray[np.float64]

#: Of ``(n,)`` means and deviations, and of the best score that a measured program has: ``(n,)``, higher is better.
Acquisition: TypeAlias = Callable[[Numbers, Numbers, float], Numbers]


def expected_improvement(mean: Numbers, std: Numbers, best: float) -> Numbers:
    """By how much a program is expected to be above the best, where one below counts as 0 (Jones et al., 1998)."""
    ahead = mean - best
    with np.errstate(divide="ignore", invalid="ignore"):
        z = ahead / std
        value = ahead * special.ndtr(z) + std * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return np.asarray(np.where(std > 0, value, np.maximum(ahead, 0.0)))


@dataclass(frozen=True)
class UpperBound:
    """The mean, and so many deviations above it."""

    deviations: float = 1.0

    def __call__(self, mean: Numbers, std: Numbers, _: float) -> Numbers:
        return mean + self.deviations * std
