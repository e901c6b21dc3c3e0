"""Constants that no loop measures, or that several loops confound, fitted to small programs by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from ansorlite.cost_model.draft import Draft
from ansorlite.cost_model.metrics import rank_correlation
from ansorlite.machine.constants import MachineConstants
from ansorlite.target import Target

#: What is fitted: factors on these, about what was measured.
FITTED: Final = (
    "div", "math", "convert", "latency", "forwarding", "load", "store", "broadcast", "gather", "masked", "crossing", "update",
    "move", "spill", "branch", "code", "l2_bytes", "l3_bytes", "memory_bytes", "l2_run", "l3_run", "page",
    "near_overlap", "far_overlap", "issue",
)  # fmt: skip
#: How far a factor strays for as much as an error of one: e-fold.
_STRAYS: Final = 0.7
#: Folds of tasks that say whether a fit helps.
_FOLDS: Final = 4


@dataclass(frozen=True, eq=False)
class Sample:
    """Programs of one task.

    Attributes:
        features: of each, (1, statements, features).
        seconds: (n,) of each.
    """

    features: Sequence[NDArray[np.float64]]
    seconds: NDArray[np.float64]

    def stacked(self) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Programs of equally many statements together: their numbers, and (n, statements, features)."""
        found: dict[int, list[int]] = {}
        for number, each in enumerate(self.features):
            found.setdefault(each.shape[1], []).append(number)
        return [(np.array(numbers), np.concatenate([self.features[n] for n in numbers])) for numbers in found.values()]


def scores(target: Target, machine: MachineConstants, sample: Sample) -> NDArray[np.float64]:
    """(n,) the model's scores of the programs: minus the natural logarithm of the estimated seconds."""
    draft = Draft(replace(target, machine=machine))
    result = np.empty(len(sample.seconds))
    for numbers, features in sample.stacked():
        result[numbers] = draft(features)
    return result


def fit(target: Target, start: MachineConstants, samples: Sequence[Sample]) -> tuple[MachineConstants, float, float]:
    """The row that explains ``samples`` best, and the mean rank correlations on tasks left out, before and after.

    It is ``start`` itself where fitting does not help on tasks that it has not seen.
    """
    before, after = [], []
    for fold in range(_FOLDS):
        seen = [sample for number, sample in enumerate(samples) if number % _FOLDS != fold]
        row = _fitted(target, start, seen)
        for sample in samples[fold::_FOLDS]:
            before.append(rank_correlation(scores(target, start, sample), sample.seconds))
            after.append(rank_correlation(scores(target, row, sample), sample.seconds))
    one, two = float(np.nanmean(before)), float(np.nanmean(after))
    return (_fitted(target, start, samples) if two > one else start), one, two


def _fitted(target: Target, start: MachineConstants, samples: Sequence[Sample]) -> MachineConstants:
    def row(factors: NDArray[np.float64]) -> MachineConstants:
        values = {name: getattr(start, name) * float(np.exp(f)) for name, f in zip(FITTED, factors, strict=True)}
        return replace(start, **{name: min(value, 1.0) if name.endswith("_overlap") else value for name, value in values.items()})

    prepared = [(sample.stacked(), -np.log(sample.seconds)) for sample in samples]

    def errors(factors: NDArray[np.float64]) -> NDArray[np.float64]:
        draft = Draft(replace(target, machine=row(factors)))
        found = []
        for stacks, speed in prepared:
            wrong = np.empty(len(speed))
            for numbers, features in stacks:
                wrong[numbers] = draft(features) - speed[numbers]
            # What all programs of a task have wrong in common does not rank them.
            found.append((wrong - np.median(wrong)) / np.sqrt(len(wrong)))
        return np.concatenate([*found, np.sqrt(len(samples) / len(FITTED)) * factors * 0.1 / _STRAYS])

    solved = least_squares(errors, np.zeros(len(FITTED)), loss="soft_l1", f_scale=0.3, bounds=(-2.5, 2.5), max_nfev=60)
    return row(solved.x)
