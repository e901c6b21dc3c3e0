"""What is wanted of one model, and what an objective over several is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansorlite.errors import ArgumentError


@dataclass(frozen=True)
class Goal:
    """What is wanted of one model.

    Attributes:
        weight: how much it counts beside the others.
        bound: seconds below which it is fast enough: for ``"bounds"``.
        reference: seconds that its speed-up is told against: for ``"geomean"``. By default those of its loops as written.

    Raises:
        ArgumentError: one of them is not positive and finite.
    """

    weight: float = 1.0
    bound: float | None = None
    reference: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("weight", self.weight), ("bound", self.bound), ("reference", self.reference)):
            if value is not None and not (isinstance(value, Real) and value > 0 and math.isfinite(value)):
                raise ArgumentError(f"the {name} of a model is {value!r}; it must be a number greater than 0")


class Objective(Protocol):
    """A positive number to be lowered, of the latencies of all models in seconds."""

    def __call__(self, latencies: NDArray[np.float64]) -> float:
        """The objective; a latency of 0 is that of a model of which nothing runs yet."""
        ...

    def slopes(self, latencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its derivatives by the latency of each model; none is negative."""
        ...
