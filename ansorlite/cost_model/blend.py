"""A closed-form prior first, and trees that learn what it gets wrong.

Before anything is measured the prior alone ranks. From then on it is calibrated, and the trees start from its estimate
instead of from zero: where there are few measurements the prior's opinion stands, and where there are many the trees
overrule it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.protocol import Group, Prior
from ansorlite.cost_model.uncertain import Bagged, Estimate

#: How many programs' worth of belief there is that the prior's logarithm has the right slope.
_BELIEF: Final = 8.0


@dataclass(frozen=True)
class Calibration:
    """``-ln(seconds) = slope * prior + offsets[task]``, from the programs that ran.

    Attributes:
        slope: at least 0, drawn towards 1 when there is little to go by. 0 means that the prior tells nothing.
        offsets: one for each task with a program that ran.
        best: for each of those tasks, minus the natural logarithm of its best latency.
    """

    slope: float
    offsets: dict[str, float]
    best: dict[str, float]

    @staticmethod
    def of(groups: Sequence[Group], priors: Sequence[NDArray[np.float64]]) -> Calibration:
        """Least squares over all tasks, each about its own mean."""
        gathered: dict[str, list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {}
        for group, prior in zip(groups, priors, strict=True):
            ran = np.isfinite(group.latencies)
            if ran.any():
                gathered.setdefault(group.task, []).append((prior[ran], -np.log(group.latencies[ran])))
        points = {task: tuple(np.concatenate(part) for part in zip(*parts, strict=True)) for task, parts in gathered.items()}
        spread = sum(float(np.sum((x - x.mean()) ** 2)) for x, _ in points.values())
        agreement = sum(float(np.sum((x - x.mean()) * (y - y.mean()))) for x, y in points.values())
        count = sum(len(x) for x, _ in points.values())
        belief = _BELIEF * spread / count if spread else 1.0
        slope = max(0.0, (agreement + belief) / (spread + belief))
        return Calibration(
            slope,
            {task: float(y.mean() - slope * x.mean()) for task, (x, y) in points.items()},
            {task: float(y.max()) for task, (_, y) in points.items()},
        )

    def throughput(self, prior: NDArray[np.float64], task: str) -> NDArray[np.float64]:
        """The estimated relative throughput of programs of ``task``; about 1 for the best. Monotone in ``prior``."""
        log = self.slope * prior + self.offsets.get(task, 0.0) - self.best.get(task, 0.0)
        # An estimate far beyond the best measured is more likely an error of the prior; it still ranks first.
        return np.where(log > 0, 1 + np.log1p(np.maximum(log, 0.0)), np.exp(np.minimum(log, 0.0)))


class Trees(Protocol):
    """What learns from where an estimate is wrong."""

    def fit(self, groups: Sequence[Group], offsets: Sequence[NDArray[np.float64]] | None = None) -> None:
        """See :meth:`ansorlite.cost_model.gbdt.GBDT.fit`."""
        ...

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(n, statements, features)`` to ``(n,)``."""
        ...


class BlendedModel:
    """A :class:`~ansorlite.cost_model.protocol.CostModel` of one task, from a prior and measurements."""

    def __init__(self, prior: Prior, trees: Trees, task: str = "") -> None:
        """``task`` is the one whose programs are to be scored; groups of others may help to fit."""
        self._prior = prior
        self._trees = trees
        self._task = task
        self._calibration: Calibration | None = None

    def fit(self, groups: Sequence[Group]) -> None:
        priors = [self._prior(group.features) for group in groups]
        if not any(np.isfinite(group.latencies).any() for group in groups if group.task == self._task):
            self._calibration = None
            return
        self._calibration = Calibration.of(groups, priors)
        estimates = [self._calibration.throughput(prior, group.task) for group, prior in zip(groups, priors, strict=True)]
        self._trees.fit(groups, estimates)

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        known = self._known(features)
        return known if self._calibration is None else known + self._trees.predict(features)

    def _known(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the prior says, calibrated as far as it can be."""
        prior = self._prior(features)
        return prior if self._calibration is None else self._calibration.throughput(prior, self._task)


class UncertainBlend(BlendedModel):
    """A :class:`BlendedModel` that is as unsure as its trees differ. Of its prior it is sure."""

    def __init__(self, prior: Prior, trees: Bagged, task: str = "") -> None:
        super().__init__(prior, trees, task)
        self._bagged = trees

    def estimate(self, features: NDArray[np.float64]) -> Estimate:
        """See :class:`~ansorlite.cost_model.uncertain.Uncertain`."""
        known = self._known(features)
        if self._calibration is None:
            return known, np.zeros(len(known))
        mean, deviation = self._bagged.estimate(features)
        return known + mean, deviation
