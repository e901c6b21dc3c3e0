"""What a cost model is: statement features in, one score a program out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.errors import ArgumentError

#: ``(n, statements, features)`` to ``(n,)``: minus the natural logarithm of the estimated seconds, up to a constant.
Prior: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Group:
    """Measured programs of one sketch of one task.

    Attributes:
        features: ``(n, statements, features)`` float64, finite; of a model that looks at another view (``views.py``), that.
        latencies: ``(n,)`` seconds; ``inf`` for a program that failed.
        task: groups that name the same task are alternatives of one another: the best of them all is the yardstick.
        device: what they ran on; groups of one task are of one device.
        censored: ``(n,)``: whether a latency is a lower bound, of a program that was stopped for being slow; ``None``: none is,
            as far as is known.
    """

    features: NDArray[np.float64]
    latencies: NDArray[np.float64]
    task: str = ""
    device: str = ""
    censored: NDArray[np.bool_] | None = None

    def take(self, rows: NDArray[np.int64]) -> Group:
        """The programs at positions ``rows``."""
        censored = None if self.censored is None else self.censored[rows]
        return replace(self, features=self.features[rows], latencies=self.latencies[rows], censored=censored)


class CostModel(Protocol):
    """Scores programs; a higher score means a faster program. Scores compare programs of one task only."""

    def fit(self, groups: Sequence[Group]) -> None:
        """Learn from all of ``groups``, and forget what was learnt before."""
        ...

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(n, statements, features)`` to ``(n,)`` scores."""
        ...


def predicted(model: CostModel, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """What ``model`` predicts of ``features`` (n, statements, features): ``(n,)`` scores.

    Raises:
        ArgumentError: it does not predict a number for each.
    """
    found: object = model.predict(features)
    match found:
        case np.ndarray(shape=shape) if shape != (len(features),):
            what = f"an array of shape {shape}"
        case np.ndarray() if np.isnan(found).any():
            what = "scores that are no numbers (NaN)"
        case np.ndarray():
            return found
        case _:
            what = f"a {type(found).__name__}"
    raise ArgumentError(f"{type(model).__name__}.predict gave {what} for {len(features)} programs; it must give (n,) scores")


def relative_throughput(groups: Sequence[Group]) -> list[NDArray[np.float64]]:
    """Ansor's label, for each group: the best latency of its task / latency, in (0, 1], and 0 for a failed program."""
    best: dict[str, float] = {}
    for group in groups:
        best[group.task] = min(best.get(group.task, np.inf), group.latencies.min(initial=np.inf))
    return [
        np.divide(best[group.task], group.latencies, out=np.zeros(len(group.latencies)), where=np.isfinite(group.latencies))
        for group in groups
    ]
