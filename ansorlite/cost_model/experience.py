"""What the draft gets wrong, learnt from the measurements of many tasks, for tasks that nobody has measured.

The draft (:mod:`ansorlite.cost_model.draft`) is a formula; its errors have causes that are the same in every task, such as
strides, short loops or traffic, and that the statement features show. A forest learns them from recorded measurements: it is
added to the draft's logarithm of the speed, and both together rank programs before the first trial, and are the prior of the
model that is then fitted to the task's own. The idea is that of TenSet (Zheng et al., NeurIPS 2021).

``python -m benchmarks.experience`` trains the forest that the package ships, and says what it is worth.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.blend import Prior
from ansorlite.cost_model.boosting import ForestSettings, boost
from ansorlite.cost_model.draft import Draft
from ansorlite.cost_model.forest import Forest
from ansorlite.cost_model.kernel import LEAVES
from ansorlite.cost_model.protocol import Group
from ansorlite.features.names import NAMES
from ansorlite.target import Target

#: Larger trees, slower steps than for the measurements of one task: there are thousands of programs.
SETTINGS: Final = ForestSettings(trees=200, leaves=16, learning_rate=0.05, feature_fraction=0.5, min_leaf=20)
#: The weight of the slowest programs beside the fastest of their task.
_LEAST_WEIGHT: Final = 0.1
#: Where the forest lies, in this package.
FILE: Final = "experience.json"


@dataclass(frozen=True, eq=False)
class Experienced:
    """A :data:`~ansorlite.cost_model.blend.Prior`: another one, and what was learnt of its errors."""

    prior: Prior
    errors: Forest

    def __call__(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.prior(features) + self.errors.predict(features)


def shipped(target: Target) -> Prior:
    """The estimate for ``target`` that the package ships: the draft, with the experience of where the project measured.

    Raises:
        ValueError: the forest was trained on features that this version does not have.
    """
    return Experienced(Draft(target), _forest())


@cache
def _forest() -> Forest:
    return from_json(files("ansorlite.cost_model").joinpath(FILE).read_text())


def learn(groups: Sequence[Group], prior: Prior, settings: ForestSettings = SETTINGS) -> Forest:
    """The forest of ``prior``'s errors, as far as they are about programs of one task beside one another.

    Programs that failed teach nothing here. Every task counts as much as any other, whatever its number of programs.

    Raises:
        ValueError: no program that ran, or a feature that is not finite.
    """
    ran = [Group(g.features[ok], g.latencies[ok], g.task) for g in groups if (ok := np.isfinite(g.latencies)).any()]
    if not ran:
        raise ValueError("no program among the measurements ran; there is nothing to learn from")
    names = {name: number for number, name in enumerate(dict.fromkeys(group.task for group in ran))}
    task = np.repeat([names[group.task] for group in ran], [len(group.latencies) for group in ran])
    speed = np.concatenate([-np.log(group.latencies) for group in ran])
    missing = speed - np.concatenate([prior(group.features) for group in ran])
    fastest = np.full(len(names), -np.inf)
    np.maximum.at(fastest, task, speed)
    weights = np.maximum(np.exp(speed - fastest[task]), _LEAST_WEIGHT)
    weights /= np.bincount(task, weights)[task] * len(names) / len(task)
    totals = np.bincount(task, weights)

    def errors(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        error = sums - missing
        # How fast a task is as a whole is not asked.
        return np.asarray(error - (np.bincount(task, weights * error) / totals)[task])

    return boost(ran, weights, errors, settings)


def to_json(forest: Forest) -> str:
    """The forest as text, one line an array."""
    arrays = {
        "used": [NAMES[feature] for feature in forest.used],
        "first": forest.first.tolist(),
        "feature": forest.feature.tolist(),
        "threshold": [float(str(value)) for value in forest.threshold],
        "mask": forest.mask.tolist(),
        "leaves": [[float(f"{value:.4g}") for value in np.trim_zeros(tree, "b")] for tree in forest.leaves],
    }
    lines = [f"{json.dumps(name)}: {json.dumps(values, separators=(',', ':'))}" for name, values in arrays.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_json(text: str) -> Forest:
    """The forest that :func:`to_json` wrote.

    Raises:
        ValueError: it asks for a feature that this version does not have.
    """
    read = json.loads(text)
    unknown = [name for name in read["used"] if name not in NAMES]
    if unknown:
        raise ValueError(f"the forest reads a feature {unknown[0]!r} that does not exist; train it again")
    leaves = np.zeros((len(read["leaves"]), LEAVES))
    for row, values in zip(leaves, read["leaves"], strict=True):
        row[: len(values)] = values
    return Forest(
        used=np.asarray([NAMES.index(name) for name in read["used"]], np.int64),
        first=np.asarray(read["first"], np.int64),
        feature=np.asarray(read["feature"], np.int64),
        threshold=np.asarray(read["threshold"], np.float32),
        mask=np.asarray(read["mask"], np.uint32),
        leaves=leaves,
    )
