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
from ansorlite.features.names import COLUMN
from ansorlite.machine.constants import MachineConstants
from ansorlite.target import Target

#: What is fitted: factors on these, about what was measured.
FITTED: Final = (
    "div", "math", "convert", "latency", "forwarding", "load", "store", "broadcast", "gather", "scatter", "masked",
    "masked_store", "crossing", "update", "move", "spill", "branch", "l2_bytes", "l3_bytes", "memory_bytes", "l2_run",
    "l3_run", "page", "core_overlap", "near_overlap", "far_overlap", "issue",
)  # fmt: skip
#: Those of them that are shares, at most 1.
_SHARES: Final = frozenset({"core_overlap", "near_overlap", "far_overlap"})
#: How far a factor strays for as much as an error of one: e-fold.
_STRAYS: Final = 0.7
#: Folds of tasks that say whether a fit helps.
_FOLDS: Final = 4


@dataclass(frozen=True, eq=False)
class Sample:
    """Programs of one task.

    Attributes:
        features: (n, statements, features); see :func:`padded`.
        seconds: (n,) of each.
    """

    features: NDArray[np.float64]
    seconds: NDArray[np.float64]


def padded(features: Sequence[NDArray[np.float64]], statements: int = 0) -> NDArray[np.float64]:
    """(n, statements, features) of arrays of different numbers of statements: those that are missing run no iterations."""
    most = max(statements, *(each.shape[1] for each in features))
    result = np.zeros((sum(len(each) for each in features), most, features[0].shape[2]))
    result[:, :, [COLUMN["lane_use"], COLUMN["balance"]]] = 1.0
    begin = 0
    for each in features:
        result[begin : begin + len(each), : each.shape[1]] = each
        begin += len(each)
    return result


def scores(target: Target, machine: MachineConstants, sample: Sample) -> NDArray[np.float64]:
    """(n,) the model's scores of the programs: minus the natural logarithm of the estimated seconds."""
    return Draft(replace(target, machine=machine))(sample.features)


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
        return replace(start, **{name: min(value, 1.0) if name in _SHARES else value for name, value in values.items()})

    together = padded([sample.features for sample in samples])
    ends = np.cumsum([len(sample.seconds) for sample in samples])[:-1]
    speeds = [-np.log(sample.seconds) for sample in samples]

    def errors(factors: NDArray[np.float64]) -> NDArray[np.float64]:
        estimates = np.split(Draft(replace(target, machine=row(factors)))(together), ends)
        wrongs = [estimate - speed for estimate, speed in zip(estimates, speeds, strict=True)]
        # What all programs of a task have wrong in common does not rank them.
        found = [(wrong - np.median(wrong)) / np.sqrt(len(wrong)) for wrong in wrongs]
        return np.concatenate([*found, np.sqrt(len(samples) / len(FITTED)) * factors * 0.1 / _STRAYS])

    solved = least_squares(errors, np.zeros(len(FITTED)), loss="soft_l1", f_scale=0.3, bounds=(-2.5, 2.5), max_nfev=60)
    return row(solved.x)
